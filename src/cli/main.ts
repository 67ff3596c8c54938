#!/usr/bin/env node
import "./heap";
import { runProgram } from "./program";

/** What reads the output may end first, as `head` does: the command still runs to its end. */
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

void runProgram(process.argv.slice(2)).then((exitCode) => {
  process.exitCode = exitCode;
});
