import Type, { type TSchema } from "typebox";
import { Check, Errors } from "typebox/value";
import { Agent, ProxyAgent, request } from "undici";
import { environmentProxy } from "../../providers/environment-proxy";
import { errorMessageOf, RetryableError, TerminalError } from "../../providers/errors";
import { type Answers, answerSchemas, type RequestPath, type Requests } from "../preview/api";
import { readJson } from "../text/json";

export interface OperatorOptions {
  /** `https://kindstack.example.com` */
  url: string;
  token: string;
  /** The CAs of the server's certificate, as PEM; by default those that Node.js trusts. */
  ca?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** Longer than the operator queues a request and works on it. */
const TIMEOUT_MS = 20 * 60_000;

/** How Node.js names a certificate that no known CA has signed. */
const UNTRUSTED = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/**
 * Asks an operator for what {@link inspectStacks} returns; the caller needs a token, but no credentials for the state.
 *
 * @throws TerminalError `Refused` by the operator, or for an answer that is not in the form of {@link answerSchemas};
 *   RetryableError `Unreachable`
 */
export async function askOperator<P extends RequestPath>(
  { url, token, ca, signal }: OperatorOptions,
  path: P,
  body: Requests[P],
): Promise<Answers[P]> {
  const connect = ca === undefined ? {} : { ca };
  const timeouts = { headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS };
  const proxy = environmentProxy(new URL(url));
  const agent =
    proxy === undefined
      ? new Agent({ connect, ...timeouts })
      : new ProxyAgent({ uri: proxy, requestTls: connect, ...timeouts });
  let status: number;
  let answer: unknown;
  try {
    const response = await request(new URL(path, url), {
      method: "POST",
      dispatcher: agent,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: signal ?? null,
    });
    status = response.statusCode;
    answer = readJson(await response.body.text());
  } catch (error) {
    signal?.throwIfAborted();
    const { code = "" } = error as NodeJS.ErrnoException;
    if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
      throw new TerminalError(
        "Misconfigured",
        `the certificate of ${url} is not for this name (${errorMessageOf(error)}): use one of its names with --server, or add ` +
          "this one to previewNames of the installation",
      );
    }
    if (UNTRUSTED.has(code)) {
      const ofNone =
        ca === undefined ? "that Node.js trusts: name its CA with --server-ca" : "in the file of --server-ca";
      throw new TerminalError("Misconfigured", `the certificate of ${url} is of no CA ${ofNone}`);
    }
    throw new RetryableError("Unreachable", `the operator at ${url} did not answer: ${errorMessageOf(error)}`);
  } finally {
    await agent.close();
  }
  if (status !== 200) throw refusal(url, path, status, answer);
  const schema: TSchema = answerSchemas[path];
  if (Check(schema, answer)) return answer as Answers[P];
  const [first] = answer === undefined ? [] : Errors(schema, answer);
  const why = first === undefined ? "it is not JSON" : `${first.instancePath || "the answer"} ${first.message}`;
  throw new TerminalError(
    "Refused",
    `cannot read the answer of ${url} to ${path}: ${why}. Is this the operator's address, and is kindstack of its version?`,
  );
}

const errorSchema = Type.Object({ error: Type.String() });

function refusal(url: string, path: string, status: number, answer: unknown): TerminalError {
  if (!Check(errorSchema, answer)) {
    return new TerminalError(
      "Refused",
      `${url} answered ${path} with status ${status}, which is no answer of an operator: check that --server has the address ` +
        "and port at which the operator serves previews, and what is before it, such as an Ingress or a proxy",
    );
  }
  if (status !== 401) return new TerminalError("Refused", `the operator at ${url}: ${answer.error}`);
  return new TerminalError(
    "Unauthorized",
    `the operator at ${url} does not know the token: is it of that cluster, and not expired?`,
  );
}
