#!/usr/bin/env node
import "./supported-node";
import "./compile-cache";
import "./warnings";
import "./heap";
import { openProbePort } from "./probe-port";
import { runCommand } from "./program";

/** The reader of the output may exit first, as `head` does; the command still completes. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

const words = process.argv.slice(2);
void openProbePort(words, process.env)
  .then(() => runCommand(words))
  .then((exitCode) => {
    process.exitCode = exitCode;
  });
