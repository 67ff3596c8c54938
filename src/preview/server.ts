import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { errorMessageOf } from "../../providers/errors";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import type { StackEngine } from "../automation/engine";
import { withUnhandled } from "../automation/unhandled";
import { type Answer, parseBody, readBody, sendAnswer } from "../http/answer";
import { authenticate, bearerToken } from "../http/authenticate";
import { ConnectionLimit } from "../http/connection-limit";
import { FairLimit } from "../http/fair-limit";
import { Refusal } from "../http/refusal";
import { type Address, createTlsServer, type Listener, listenAt } from "../http/server";
import { TokenReviews } from "../http/token-reviews";
import type { ServedCertificate } from "../tls/served-certificate";
import {
  MAX_REQUEST_BYTES,
  MAX_REQUEST_OBJECTS,
  type NeededRight,
  type RequestPath,
  type Requests,
  requestSchemas,
  requireRights,
} from "./api";
import { ClusterView } from "./cluster-view";
import { type Inspection, inspectStacks } from "./inspect";

export interface InspectionServerOptions
  extends Address,
    Pick<Inspection, "kinds" | "planKey" | "plugins" | "isBusy" | "configuredMode"> {
  tls: ServedCertificate;
  client: KubernetesClient;
  /** Called for each request that is allowed. */
  engine(): Promise<StackEngine>;
  logger: Logger;
  /** How long requests may continue after `close`. */
  graceMs: number;
}

/** What the log says of a request besides its path and its answer's code. */
interface LoggedFacts {
  user?: string;
  objects?: number;
}

const TIMEOUTS = { requestTimeout: 30_000, keepAliveTimeout: 5_000 };
const MAX_CONNECTIONS = 50;
const TIMEOUT_MS = 5 * 60_000;

const validators = new Map(Object.entries(requestSchemas).map(([path, schema]) => [path, Compile<TSchema>(schema)]));

/**
 * Answers, over TLS, what the command line asks about stacks: previews, differences, history, outputs and states. Callers
 * show a bearer token, which the API server reviews; what they may see is what they may see in the cluster.
 */
export async function startInspectionServer(options: InspectionServerOptions): Promise<Listener> {
  const { client, logger } = options;
  const reviews = new TokenReviews({ client });
  const queue = new RequestQueue();
  let stopping = false;

  async function answer(request: IncomingMessage, response: ServerResponse, facts: LoggedFacts): Promise<object> {
    const path = request.url ?? "";
    const user = await authenticate(request, reviews); // who is not known learns nothing, not even what exists
    facts.user = user.username;
    limit.recognize(request.socket, user.username);
    if (stopping) throw new Refusal(503, "ServiceUnavailable", "the operator stops: try again");
    const validator = validators.get(path);
    if (validator === undefined) throw new Refusal(404, "NotFound", "there is no such path");
    if (request.method !== "POST") throw new Refusal(405, "MethodNotAllowed", "the method must be POST");
    const read = async () => parseBody(validator, await readBody(request, MAX_REQUEST_BYTES), `a request of ${path}`);
    const gone = new AbortController();
    response.once("close", () => gone.abort(new Error("the caller has gone")));
    return queue.run(user.username, gone.signal, read, async (body) => {
      const timeout = AbortSignal.timeout(TIMEOUT_MS);
      // Dry runs have the rights of whom the preview is for.
      const token = bearerToken(request);
      const author = token === undefined ? undefined : client.ofToken(token);
      const inspection = {
        ...options,
        signal: AbortSignal.any([gone.signal, timeout]),
        authorize: (rights: readonly NeededRight[]) => requireRights(client, user, rights),
        open: async () => ({
          engine: await options.engine(),
          cluster: await ClusterView.open(client, { author }),
        }),
        maxObjects: MAX_REQUEST_OBJECTS,
        onProgress: (_done: number, total: number) => {
          facts.objects = total;
        },
      };
      try {
        const unhandled = (error: unknown) =>
          logger.error({ err: error, path }, "unhandled error in the work for a request");
        const inspect = () => inspectStacks(inspection, path as RequestPath, body as Requests[RequestPath]);
        return await withUnhandled(unhandled, inspect);
      } catch (error) {
        if (!timeout.aborted) throw error;
        throw new Refusal(504, "Timeout", "it took too long: ask for fewer objects");
      } finally {
        await author?.close();
      }
    });
  }

  const server = await createTlsServer(options.tls, TIMEOUTS);
  const limit = new ConnectionLimit(server, { max: MAX_CONNECTIONS }, async (request, response) => {
    const started = performance.now();
    const facts: LoggedFacts = {};
    const { status, body } = await answer(request, response, facts).then(
      (body): Answer => ({ status: 200, body }),
      (error: unknown): Answer => {
        // The error concerns stacks that the caller may see.
        const status = error instanceof Refusal ? error.code : 422;
        return { status, body: { error: errorMessageOf(error) } };
      },
    );
    const seconds = Math.round(performance.now() - started) / 1000;
    logger.info({ path: request.url, code: status, ...facts, seconds }, "inspection request answered");
    const headers = [429, 503].includes(status) ? { "retry-after": "10" } : {};
    sendAnswer(response, { status, headers, body });
  });
  server.on("clientError", (_error, socket) => socket.destroy());
  const { port, close } = await listenAt(limit, options, options.graceMs);
  return {
    port,
    close() {
      stopping = true;
      return close();
    },
  };
}

/** Requests of one user, the running one included. */
const MAX_PER_USER = 4;

/**
 * Runs one request at a time, so that updates have priority. Users take turns: many requests of one user do not delay those of
 * others.
 */
export class RequestQueue {
  readonly #limit = new FairLimit(1);
  /** Of each user, how many run or wait. */
  readonly #requests = new Map<string, number>();

  /**
   * Runs when its turn comes. One whose caller has gone ends at once, and counts no more.
   *
   * @param read what comes before: it waits for no one, but counts as a request of the user
   * @throws Refusal 429 for a user with too many requests
   */
  async run<B, T>(
    user: string,
    signal: AbortSignal,
    read: () => Promise<B>,
    work: (body: B) => Promise<T>,
  ): Promise<T> {
    const own = this.#requests.get(user) ?? 0;
    if (own >= MAX_PER_USER) {
      throw new Refusal(429, "TooManyRequests", `${own} requests of ${user} are under way: try again later`);
    }
    this.#requests.set(user, own + 1);
    try {
      const body = await read();
      signal.throwIfAborted();
      const gone = once(signal, "abort").then((): never => signal.throwIfAborted() as never);
      const turn = this.#limit.run(user, async () => {
        signal.throwIfAborted();
        return work(body);
      });
      return await Promise.race([turn, gone]);
    } finally {
      const rest = (this.#requests.get(user) ?? 1) - 1;
      if (rest > 0) this.#requests.set(user, rest);
      else this.#requests.delete(user);
    }
  }
}
