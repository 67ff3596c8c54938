#!/usr/bin/env node
import "./node-version";
import "./warnings";
import "./heap";
import { runProgram } from "./program";

/** The reader of the output may exit first, as `head` does; the command still completes. */
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

void runProgram(process.argv.slice(2)).then((exitCode) => {
  process.exitCode = exitCode;
});
