import { dataOf } from "../../providers/error-data";
import { invalidProgram, type TerminalError } from "../../providers/errors";
import type { FromPackage } from "./messages";

/** What one message may hold, in characters and numbers. A custom resource has at most 1.5 MB, and the operator reads a message at once. */
const MAX_SIZE = 16 * 2 ** 20;
const NUMBER_SIZE = 8;

/** Whether a value is larger. It may refer to itself: that has no end, and is larger than anything. */
export function isLarger(value: unknown, than: number): boolean {
  const left = [value];
  let size = 0;
  while (left.length > 0) {
    const one = left.pop();
    size += typeof one === "string" ? one.length : NUMBER_SIZE;
    if (ArrayBuffer.isView(one)) size += one.byteLength;
    else if (one instanceof Map) for (const entry of one) left.push(...entry);
    else if (one instanceof Set) for (const item of one) left.push(item);
    else if (typeof one === "object" && one !== null) {
      for (const [key, part] of Object.entries(one)) {
        size += key.length;
        left.push(part);
      }
    }
    if (size > than) return true;
  }
  return false;
}

/** A message as it may be sent. @throws TerminalError for a question that is too large */
export function bounded(message: FromPackage): FromPackage {
  if (!isLarger(message, MAX_SIZE)) return message;
  switch (message.type) {
    case "answer":
      return { type: "answer", id: message.id, error: dataOf(tooLarge()) };
    case "unhandled":
      return { ...message, error: dataOf(tooLarge()) };
    case "log":
      return {
        type: "log",
        call: message.call,
        level: "warn",
        message: "a line of the log is too large: it is left out",
      };
    case "progress":
      return { ...message, message: message.message.slice(0, 1_000) };
    default:
      throw tooLarge();
  }
}

function tooLarge(): TerminalError {
  return invalidProgram(
    `the kind's code returns or sends more than ${MAX_SIZE / 2 ** 20} MiB, or what refers to itself`,
  );
}
