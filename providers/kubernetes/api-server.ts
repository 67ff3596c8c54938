import { type Cluster, KubeConfig, type User } from "@kubernetes/client-node";
import { type Dispatcher, interceptors, request } from "undici";
import { ClassifiedError, type ErrorClass, errorMessageOf } from "../errors";
import type { Fence } from "../fence";
import type { Reason } from "../reasons";
import { Login } from "./login";
import { MESSAGES } from "./messages";
import { healingDependency } from "./refusals";

/** The API server's refusal, with its own words, status code and reason. */
export class ApiError extends ClassifiedError {
  readonly errorClass: ErrorClass;
  /** The name of the object that the API server itself says does not exist. */
  readonly absent: string | undefined;

  constructor(
    readonly status: number,
    reason: string,
    message: string,
    { path, absent }: { path?: string; absent?: string | undefined } = {},
  ) {
    // The server has reasons of its own.
    super(reason as Reason, message, { dependency: path && healingDependency({ status, message, path }) });
    this.absent = absent;
    // What the server understood and refused stays refused until the request changes.
    // A type that it does not serve is installed by someone, and not by waiting.
    const refused = [400, 403, 405, 413, 415, 422].includes(status) || reason === "UnknownKind";
    this.errorClass = refused && this.dependency === undefined ? "terminal" : "retryable";
  }
}

/** Whether the API server answered with one of these HTTP status codes. */
export function isApiError(error: unknown, ...codes: readonly number[]): error is ApiError {
  return error instanceof ApiError && codes.includes(error.status);
}

interface RequestArguments {
  query?: Record<string, string | undefined>;
  body?: unknown;
  contentType?: string;
  accept?: string;
  signal?: AbortSignal | undefined;
}

const REQUEST_TIMEOUT_MS = 30_000;
const ENDLESS = 0;

/** For a request that may be repeated and that a busy server puts off, as it does after a CRD has changed. It says for how long. */
const retryPutOff = interceptors.retry({
  methods: ["GET", "PUT", "PATCH", "DELETE"],
  statusCodes: [429],
  errorCodes: [],
  maxRetries: 5,
  maxTimeout: 10_000,
  throwOnError: false, // the last answer is the caller's
});

/** The API server that a kubeconfig names, for requests with the credentials of its current user. */
export class ApiServer {
  readonly #config: KubeConfig;
  readonly #login: Login;
  readonly #fence: Fence | undefined;
  readonly #isPatient: boolean;

  /**
   * @param of a kubeconfig, or another client, whose connections it shares
   * @param isPatient whether requests that a busy server puts off are repeated
   */
  constructor(of: KubeConfig | ApiServer, fence?: Fence, isPatient = false) {
    const isShared = of instanceof ApiServer;
    this.#config = isShared ? of.#config : of;
    this.#login = isShared ? of.#login : new Login(of);
    this.#fence = fence;
    this.#isPatient = isPatient;
  }

  get server(): string {
    return this.#cluster.server;
  }

  get #cluster(): Cluster {
    const cluster = this.#config.getCurrentCluster();
    if (cluster !== null) return cluster;
    throw new ApiError(400, "NoCluster", "the kubeconfig names no current cluster: set KUBECONFIG or a context");
  }

  /** The namespace of the kubeconfig's current context; in a Pod its own. */
  get namespace(): string {
    return this.#config.getContextObject(this.#config.getCurrentContext())?.namespace || "default";
  }

  /** The same API server for another user. */
  protected configOf(user: User): KubeConfig {
    const config = new KubeConfig();
    config.loadFromClusterAndUser(this.#cluster, user);
    return config;
  }

  async json<T>(method: Dispatcher.HttpMethod, path: string, options: RequestArguments = {}): Promise<T> {
    return (await this.send(method, path, options)).body as T;
  }

  /**
   * One request and its parsed answer.
   *
   * @throws ApiError for a refusal, and with the status 0 when there is no answer, or no credentials; what the fence
   *   throws, for a write, and at its end
   */
  async send(
    method: Dispatcher.HttpMethod,
    path: string,
    options: RequestArguments = {},
  ): Promise<{ status: number; body: unknown }> {
    const signals = [options.signal, this.#fence?.signal].filter((signal) => signal !== undefined);
    const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
    const { statusCode, body } = await this.#request(method, path, { ...options, signal }, REQUEST_TIMEOUT_MS);
    const text = await this.#unlessSilent(signal, path, body.text());
    return { status: statusCode, body: text.startsWith("{") ? JSON.parse(text) : text };
  }

  /**
   * The raw body of an answer without an end; the caller reads, times and aborts it.
   *
   * @throws ApiError when the server refuses
   */
  async stream(path: string, options: RequestArguments): Promise<AsyncIterable<Uint8Array>> {
    return (await this.#request("GET", path, options, ENDLESS)).body;
  }

  /** @param silenceMs how long the API server may take to begin its answer, and be silent in the middle of it */
  async #request(
    method: Dispatcher.HttpMethod,
    path: string,
    { query = {}, body, contentType = "application/json", accept = "application/json", signal }: RequestArguments,
    silenceMs: number,
  ): Promise<Dispatcher.ResponseData> {
    const { dispatcher, headers } = await this.#login.access().catch((error: unknown) => {
      if (error instanceof ClassifiedError) throw error;
      // A plugin fails as the network does, and a certificate may be replaced before its key is.
      const message = `the credentials for the API server at ${this.server} cannot be read: ${errorMessageOf(error)}`;
      throw new ApiError(0, "Unreachable", message, { path });
    });
    const url = new URL(this.server.replace(/\/$/, "") + path);
    for (const [key, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(key, value);
    if (method !== "GET") this.#fence?.check();
    const answer = request(url, {
      method,
      dispatcher: this.#isPatient ? dispatcher.compose(retryPutOff) : dispatcher,
      headers: {
        ...headers,
        accept,
        "user-agent": "kindstack",
        ...(body !== undefined && { "content-type": contentType }),
      },
      body: body === undefined ? null : yamlSafeJson(body),
      reset: false, // a DELETE with a body is taken for the last request of its connection otherwise
      headersTimeout: silenceMs,
      bodyTimeout: silenceMs,
      ...(signal && { signal }),
    });
    const response = await this.#unlessSilent(signal, path, answer);
    if (response.statusCode < 400) return response;
    throw errorOf(response.statusCode, await this.#unlessSilent(signal, path, response.body.text()), path);
  }

  async #unlessSilent<T>(signal: AbortSignal | undefined, path: string, answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      if (signal?.aborted) throw error;
      const { message, code } = error as { code?: string; message?: string };
      throw new ApiError(0, "Unreachable", `the API server at ${this.server} did not answer: ${message || code}`, {
        path,
      });
    }
  }

  close(): Promise<void> {
    return this.#login.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Server-side apply reads JSON as YAML, which refuses characters that JSON need not escape. */
function yamlSafeJson(body: unknown): string {
  return JSON.stringify(body).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function errorOf(statusCode: number, text: string, path: string): ApiError {
  const { reason = "", message = text.slice(0, 1000), details } = statusOf(text);
  if (MESSAGES.untyped.test(message)) return new ApiError(422, "Invalid", message, { path });
  const absent = reason === "NotFound" ? details?.name : undefined;
  return new ApiError(statusCode, reason || `Http${statusCode}`, message, { path, absent });
}

function statusOf(text: string): { reason?: string; message?: string; details?: { name?: string } } {
  try {
    return JSON.parse(text) as object;
  } catch {
    return {};
  }
}
