import { readFileSync } from "node:fs";
import type Type from "typebox";
import { Check } from "typebox/value";
import { Agent, request } from "undici";
import { errorMessageOf, RetryableError, TerminalError } from "../../providers/errors";
import type { StackState } from "../automation/stack-reader";
import type { ResourceOutputs, StackUpdate } from "./inspector";
import { type Report, reportSchema } from "./report";
import type { DiffRequest, ObjectRequest, PreviewRequest, RequestPath } from "./requests";

export interface RemoteOptions {
  /** `https://kindstack.example.com` */
  url: string;
  token: string;
  /** A file with the CAs of the server's certificate; by default those that Node.js trusts. */
  caFile?: string | undefined;
  signal?: AbortSignal;
}

/** Longer than the operator works on one request and lets it wait. */
const TIMEOUT_MS = 20 * 60_000;

/** Asks an operator what {@link Inspector} finds out, with the caller's token in place of credentials for the state. */
export class RemoteInspector {
  readonly #options: RemoteOptions;
  readonly #agent: Agent;

  /** @throws TerminalError `Misconfigured` for a file that cannot be read */
  constructor(options: RemoteOptions) {
    this.#options = options;
    const connect = options.caFile === undefined ? {} : { ca: readCa(options.caFile) };
    this.#agent = new Agent({ connect, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
  }

  async preview(body: PreviewRequest): Promise<Report> {
    return reportOf(await this.#ask("/v1/preview", body));
  }

  async diff(body: DiffRequest): Promise<Report> {
    return reportOf(await this.#ask("/v1/diff", body));
  }

  history(body: ObjectRequest): Promise<StackUpdate[]> {
    return this.#ask("/v1/history", body) as Promise<StackUpdate[]>;
  }

  outputs(body: ObjectRequest): Promise<ResourceOutputs[]> {
    return this.#ask("/v1/outputs", body) as Promise<ResourceOutputs[]>;
  }

  state(body: ObjectRequest): Promise<StackState> {
    return this.#ask("/v1/state", body) as Promise<StackState>;
  }

  close(): Promise<void> {
    return this.#agent.close();
  }

  async #ask(path: RequestPath, body: object): Promise<unknown> {
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
      throw new RetryableError("Unreachable", `the operator at ${url} did not answer: ${errorMessageOf(error)}`);
    }
    const answer = parsed(text);
    if (status === 200) return answer;
    if (status === 401) {
      throw new TerminalError(
        "Unauthorized",
        `the operator at ${url} does not know the token: is it of that cluster, and not expired?`,
      );
    }
    const { error = `${status}` } = (answer ?? {}) as { error?: string };
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

function reportOf(answer: unknown): Report {
  if (Check(reportSchema as Type.TSchema, answer)) return answer as Report;
  throw new TerminalError(
    "Refused",
    "the operator's report is of another version: use the operator's version of kindstack",
  );
}

function readCa(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new TerminalError("Misconfigured", `--server-ca: ${errorMessageOf(error)}`);
  }
}
