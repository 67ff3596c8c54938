import Type from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { Check } from "typebox/value";
import { Agent, request } from "undici";
import { errorMessageOf, RetryableError, TerminalError } from "../../providers/errors";
import type { StackState } from "../automation/stack-state";
import { type Answers, answerSchemas, type ResourceOutputs, type StackUpdate } from "./answers";
import type { Report } from "./report";
import type { DiffRequest, ObjectRequest, PreviewRequest, RequestPath } from "./requests";

export interface RemoteOptions {
  /** `https://kindstack.example.com` */
  url: string;
  token: string;
  /** The CAs of the server's certificate, as PEM; by default those that Node.js trusts. */
  ca?: string | undefined;
  signal?: AbortSignal;
}

/** Longer than the operator works on one request and lets it wait. */
const TIMEOUT_MS = 20 * 60_000;

/** How Node.js names a certificate that no known CA has signed. */
const UNTRUSTED = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/** Asks an operator what {@link Inspector} finds out, with the caller's token in place of credentials for the state. */
export class RemoteInspector {
  readonly #options: RemoteOptions;
  readonly #agent: Agent;

  constructor(options: RemoteOptions) {
    this.#options = options;
    const connect = options.ca === undefined ? {} : { ca: options.ca };
    this.#agent = new Agent({ connect, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
  }

  preview(body: PreviewRequest): Promise<Report> {
    return this.#ask("/v1/preview", body);
  }

  diff(body: DiffRequest): Promise<Report> {
    return this.#ask("/v1/diff", body);
  }

  history(body: ObjectRequest): Promise<StackUpdate[]> {
    return this.#ask("/v1/history", body);
  }

  outputs(body: ObjectRequest): Promise<ResourceOutputs[]> {
    return this.#ask("/v1/outputs", body);
  }

  state(body: ObjectRequest): Promise<StackState> {
    return this.#ask("/v1/state", body);
  }

  close(): Promise<void> {
    return this.#agent.close();
  }

  /** @throws TerminalError `Refused` by the operator, or for an answer that is not in the form of {@link answerSchemas} */
  async #ask<P extends RequestPath>(path: P, body: object): Promise<Answers[P]> {
    const { url, token, signal } = this.#options;
    const address = new URL(path, url).href;
    let status: number;
    let text: string;
    try {
      const response = await request(address, {
        method: "POST",
        dispatcher: this.#agent,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify(body),
        signal: signal ?? null,
      });
      status = response.statusCode;
      text = await response.body.text();
    } catch (error) {
      signal?.throwIfAborted();
      if (UNTRUSTED.has((error as NodeJS.ErrnoException).code ?? "")) {
        throw new TerminalError(
          "Misconfigured",
          `the certificate of ${url} is of no CA that is known here (${errorMessageOf(error)}): name its CA with --server-ca`,
        );
      }
      throw new RetryableError("Unreachable", `the operator at ${url} did not answer: ${errorMessageOf(error)}`);
    }
    const answer = parsed(text);
    if (status === 200) return checked(url, path, answer);
    if (status === 401) {
      throw new TerminalError(
        "Unauthorized",
        `the operator at ${url} does not know the token: is it of that cluster, and not expired?`,
      );
    }
    const error = Check(errorSchema, answer) ? answer.error : `status ${status}`;
    throw new TerminalError("Refused", `the operator at ${url}: ${error}`);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const errorSchema = Type.Object({ error: Type.String() });
const validators = new Map<RequestPath, Validator>();

function checked<P extends RequestPath>(url: string, path: P, answer: unknown): Answers[P] {
  const validator = validators.get(path) ?? Compile(answerSchemas[path]);
  validators.set(path, validator);
  if (validator.Check(answer)) return answer as Answers[P];
  const [first] = answer === undefined ? [] : validator.Errors(answer);
  const why = first === undefined ? "it is not JSON" : `${first.instancePath || "the answer"} ${first.message}`;
  throw new TerminalError(
    "Refused",
    `cannot read the answer of ${url} to ${path}: ${why}. Is this the operator's address, and is kindstack of its version?`,
  );
}
