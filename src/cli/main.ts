#!/usr/bin/env node
import "./heap";
import { runProgram } from "./program";

void runProgram(process.argv.slice(2)).then((exitCode) => {
  process.exitCode = exitCode;
});
