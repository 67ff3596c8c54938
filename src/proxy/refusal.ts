import type { ServerResponse } from "node:http";
import { Refusal } from "../http/refusal";

/** The Status object that tells clients of Kubernetes about a failure. */
export function failureStatus({ code, reason, message }: Pick<Refusal, "code" | "reason" | "message">) {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code };
}

/** Answers with the refusal; anything else is a fault of the proxy, whose details are not disclosed. */
export function refuse(response: ServerResponse, error: unknown): void {
  const refusal =
    error instanceof Refusal ? error : new Refusal(500, "InternalError", "the proxy failed to answer this request");
  const body = JSON.stringify(failureStatus(refusal));
  response.writeHead(refusal.code, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-cache, private",
    // A body that was sent along may never have been read, and would be taken for the next request.
    connection: "close",
    ...(refusal.code === 503 && { "retry-after": "1" }),
  });
  response.end(body);
}
