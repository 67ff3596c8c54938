import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { errorMessageOf } from "../../providers/errors";
import { TypeCheck } from "./type-check";

/** What the worker is started with. */
export interface TypeCheckTask {
  /** The TypeScript modules to check. */
  entries: readonly string[];
}

/** What the worker answers each message with. */
export interface TypeCheckAnswer {
  errors: string[];
  files: string[];
  /** Modules that are not checked, and why. */
  unchecked: string[];
}

/* A thread of its own: a check takes seconds at first, in which the operator would do nothing else. */

const { entries } = workerData as TypeCheckTask;
const checks = entries.map((entry) => ({ entry, check: TypeCheck.open(entry) }));
const port = parentPort as MessagePort;
port.on("message", () => {
  const answer: TypeCheckAnswer = { errors: [], files: [], unchecked: [] };
  for (const { entry, check } of checks) {
    if (typeof check === "string") {
      answer.unchecked.push(`${entry}: ${check}`);
      continue;
    }
    try {
      const { errors, files } = check.check();
      answer.errors.push(...errors);
      answer.files.push(...files);
    } catch (error) {
      answer.unchecked.push(`${entry}: ${errorMessageOf(error)}`);
    }
  }
  port.postMessage(answer);
});
