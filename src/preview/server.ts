import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { errorMessageOf } from "../../providers/errors";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import { findKind } from "../../stacks/contract/kind-name";
import { type Answer, sendAnswer } from "../http/answer";
import { parseBody, readBody } from "../http/body";
import { Refusal } from "../http/refusal";
import { type Address, createTlsServer, type Listener, listenAt } from "../http/server";
import type { Authenticator } from "../proxy/authenticate";
import type { ServedCertificate } from "../tls/served-certificate";
import { type NeededRight, requireRights, rightsForDiff, rightsForPreview, rightsForStack } from "./access";
import type { Inspector } from "./inspector";
import { type Selection, selectCandidates } from "./preview";
import { RequestQueue } from "./request-queue";
import {
  type DiffRequest,
  MAX_REQUEST_BYTES,
  MAX_REQUEST_OBJECTS,
  type ObjectRequest,
  type PreviewRequest,
  type RequestPath,
  requestSchemas,
} from "./requests";

export interface InspectionServerOptions extends Address {
  tls: ServedCertificate;
  kinds: readonly AnyKind[];
  client: Pick<KubernetesClient, "json">;
  authenticator: Pick<Authenticator, "authenticate">;
  /** Opened for each request; the signal ends what it does. */
  inspector(signal: AbortSignal): Promise<Inspector>;
  logger: Logger;
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
  const queue = new RequestQueue();
  const server = await createTlsServer(
    options.tls,
    TIMEOUTS,
    (request, response) => void respond(options, queue, request, response),
  );
  server.maxConnections = MAX_CONNECTIONS;
  server.on("clientError", (_error, socket) => socket.destroy());
  return listenAt(server, options);
}

async function respond(
  options: InspectionServerOptions,
  queue: RequestQueue,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const started = performance.now();
  const facts: { user?: string; objects?: number } = {};
  const { status, body } = await answer(options, queue, request, response, facts).then(
    (value): Answer => ({ status: 200, body: value }),
    (error: unknown): Answer => {
      // What fails is about the stacks that the caller may see.
      const status = error instanceof Refusal ? error.code : 422;
      return { status, body: { error: errorMessageOf(error) } };
    },
  );
  options.logger.info(
    { path: request.url, code: status, ...facts, seconds: Math.round(performance.now() - started) / 1000 },
    "inspection request answered",
  );
  const headers = [429, 503].includes(status) ? { "retry-after": "10" } : {};
  sendAnswer(response, { status, headers, body });
}

async function answer(
  options: InspectionServerOptions,
  queue: RequestQueue,
  request: IncomingMessage,
  response: ServerResponse,
  facts: { user?: string; objects?: number },
): Promise<object> {
  const path = request.url ?? "";
  const user = await options.authenticator.authenticate(request); // who is not known learns nothing, not even what exists
  facts.user = user.username;
  const validator = validators.get(path);
  if (validator === undefined) throw new Refusal(404, "NotFound", "there is no such path");
  if (request.method !== "POST") throw new Refusal(405, "MethodNotAllowed", "the method must be POST");
  const body = parseBody(validator, await readBody(request, MAX_REQUEST_BYTES), `a request of ${path}`);
  const gone = new AbortController();
  response.once("close", () => gone.abort(new Error("the caller has gone")));
  return queue.run(user.username, gone.signal, async () => {
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const signal = AbortSignal.any([gone.signal, timeout]);
    const allow = (rights: readonly NeededRight[]) => requireRights(options.client, user, rights);
    try {
      return await inspect(options, path as RequestPath, body, signal, allow, facts);
    } catch (error) {
      if (!timeout.aborted) throw error;
      throw new Refusal(504, "Timeout", "it took too long: ask for fewer objects");
    }
  });
}

async function inspect(
  { kinds, inspector: open }: InspectionServerOptions,
  path: RequestPath,
  body: unknown,
  signal: AbortSignal,
  allow: (rights: readonly NeededRight[]) => Promise<void>,
  facts: { objects?: number },
): Promise<object> {
  if (path === "/v1/preview") {
    const { namespace, manifests, before, refresh } = body as PreviewRequest;
    const selection = selectCandidates(kinds, namespace, manifests, before);
    facts.objects = limited(selection);
    await allow(rightsForPreview(selection));
    return (await open(signal)).preview(selection, refresh);
  }
  if (path === "/v1/diff") {
    const request = body as DiffRequest;
    const chosen = request.kind === undefined ? kinds : [kindOf(kinds, request.kind)];
    await allow(rightsForDiff(chosen, request));
    const inspector = await open(signal);
    const selection = await inspector.selectLive(request);
    facts.objects = limited(selection);
    return inspector.preview(selection, request.refresh);
  }
  const request = body as ObjectRequest;
  const kind = kindOf(kinds, request.kind);
  const resource = path === "/v1/state" ? "states" : "previews";
  await allow(rightsForStack(resource, { ...request, kind }, false)); // before anything is told of the object
  const inspector = await open(signal);
  const located = await inspector.locate(request);
  await allow(rightsForStack(resource, located, path !== "/v1/outputs"));
  if (path === "/v1/history") return inspector.history(located);
  return path === "/v1/outputs" ? inspector.outputs(located) : inspector.state(located);
}

function kindOf(kinds: readonly AnyKind[], word: string): AnyKind {
  try {
    return findKind(kinds, word);
  } catch (error) {
    throw new Refusal(400, "BadRequest", errorMessageOf(error));
  }
}

function limited({ candidates }: Selection): number {
  if (candidates.length <= MAX_REQUEST_OBJECTS) return candidates.length;
  const message = `a request is for ${MAX_REQUEST_OBJECTS} objects at most, not ${candidates.length}`;
  throw new Refusal(413, "RequestEntityTooLarge", message);
}
