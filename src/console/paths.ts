import type { IncomingMessage } from "node:http";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import type { Answer } from "../http/answer";

/** Answers a request for one of its pages; `undefined` when it is for none. */
export type Console = (request: IncomingMessage) => Promise<Answer | undefined>;

export const CONSOLE_PATH = "/console";

export function objectHref(kind: AnyKind, key: string): string {
  return `${CONSOLE_PATH}/objects/${kindName(kind)}/${key.split("/").map(encodeURIComponent).join("/")}`;
}

/** The address of a kind's objects, or of those that have this reason. */
export function kindHref(kind: string, reason?: string): string {
  return `${CONSOLE_PATH}/kinds/${kind}${reason === undefined ? "" : `?reason=${encodeURIComponent(reason)}`}`;
}
