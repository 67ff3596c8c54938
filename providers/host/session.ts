import { AsyncLocalStorage } from "node:async_hooks";
import { setMaxListeners } from "node:events";
import type { DefinedProvider } from "../dynamic";
import { type Failure, failureOf, initializationOf, RetryableError } from "../errors";
import { inTime } from "../in-time";
import { standardError } from "../log";
import { holdOf, type Observations, type WriteCall, withObserved } from "../observation";
import type { Properties, ProviderContext, WorkContext } from "../provider";
import { withProgram } from "../registration";
import { PROVIDER_PROPERTY } from "../resource-options";
import type { Snapshot } from "../snapshot";
import { nameOf } from "../urn";

export type AnyProvider = DefinedProvider["provider"];

/** A resource operation that a provider refused, with the class that is lost on the way through the engine. */
export interface ResourceFailure extends Failure {
  urn: string;
}

interface SessionOptions {
  /** The work that the update is part of; without, all that its calls may do ends with the session alone. */
  context?: WorkContext | undefined;
  /** Each interrupts the update. */
  signals?: readonly (AbortSignal | undefined)[] | undefined;
  /** Deletions release what was made instead of deleting it. */
  release?: boolean | undefined;
  snapshot?: Snapshot | undefined;
  /** Keep what a program gives, see {@link ProviderSession.given}. */
  keepsGiven?: boolean | undefined;
  /** What a preview has observed: the update writes nothing else than what it saw. */
  observed?: Observations | undefined;
}

/** What a program gives for a resource, with its secrets. */
export interface Given {
  news: Properties;
  /** What the state has of it, if there is something to compare with. */
  olds?: Properties;
}

/** A request of Pulumi's provider protocol (`pulumirpc.ResourceProvider`), in its JSON form. */
export interface ProviderRequest {
  urn: string;
  id?: string;
  olds?: Properties;
  news?: Properties;
  /** Of `Create`, the inputs; of `Read` and `Delete`, the outputs. */
  properties?: Properties;
  inputs?: Properties;
  /** In seconds, where the resource has `customTimeouts`. */
  timeout?: number;
  /** Of `Observe`, which is the engine's own, the call that it is about. */
  operation?: WriteCall;
}

type Method = (session: ProviderSession, request: ProviderRequest, context: ProviderContext) => Promise<object>;

/** What one update asks of the providers. */
export class ProviderSession {
  readonly failures: ResourceFailure[] = [];
  /** How many creations have no answer, or failed without telling what they made. */
  #unrecorded = 0;
  /** By URN: the engine's events have no secrets, so that they do not tell which differ. */
  readonly given = new Map<string, Given>();
  /** What a preview's writes would overwrite, so far. */
  readonly observed = new Map<string, string>();
  /** What its calls are told. The fence ends with that of the work, and when the session is closed. */
  readonly context: ProviderContext;
  /** Unhandled errors of calls are those of the work that opened the session, and the engine calls from elsewhere. */
  readonly #within = AsyncLocalStorage.snapshot();
  readonly #end = new AbortController();

  /** @param providerOf the provider behind a stub that the state may hold */
  constructor(
    readonly options: SessionOptions,
    readonly providerOf: (stub: string) => AnyProvider | undefined,
  ) {
    const { context: work, signals = [], snapshot } = options;
    const { signal: ended } = this.#end;
    const check = () => {
      work?.fence.check();
      ended.throwIfAborted();
    };
    const signal = AbortSignal.any([ended, ...signals.filter((one) => one !== undefined)]);
    setMaxListeners(0, ended, signal); // each connection to a database listens
    const log = work?.log ?? standardError("provider");
    const progress = (message: string) => work?.progress(message);
    this.context = { fence: { check, signal: ended }, signal, log, progress, object: work?.object, snapshot };
    const fallen = work?.fence.signal;
    const end = () => this.#end.abort(fallen?.reason);
    if (fallen?.aborted) end();
    else fallen?.addEventListener("abort", end, { signal: ended });
  }

  /** Whether a creation may have made something that its answer does not tell, or that has no answer. */
  get unrecorded(): boolean {
    return this.#unrecorded > 0;
  }

  /**
   * Answers a call of the engine's.
   *
   * @param method a method of `pulumirpc.ResourceProvider`
   * @throws what the provider throws, which is kept among the failures
   */
  async call(method: string, request: ProviderRequest): Promise<object> {
    const creates = method === "Create" ? 1 : 0;
    this.#unrecorded += creates;
    try {
      const answer = await this.#answer(method, request);
      this.#unrecorded -= creates;
      return answer;
    } catch (error) {
      if (initializationOf(error) !== undefined) this.#unrecorded -= creates;
      this.failures.push({ urn: request.urn, ...failureOf(error) });
      throw error;
    }
  }

  async #answer(method: string, request: ProviderRequest): Promise<object> {
    const answer = Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;
    if (answer === undefined) throw new Error(`dynamic providers have no method ${method}`);
    const name = nameOf(request.urn);
    const run = (context: ProviderContext) =>
      this.#within(() =>
        withProgram({ log: this.options.context?.log }, async () => {
          context.fence.check();
          const progress = (message: string) => context.progress(`${name}: ${message}`);
          return answer(this, request, { ...context, progress });
        }),
      );
    const seconds = request.timeout;
    if (!seconds) return await run(this.context);
    const end = new AbortController();
    const signal = AbortSignal.any([this.context.signal, end.signal]);
    return await inTime(run({ ...this.context, signal }), seconds * 1000, () => {
      // What the call still does is found again by the next one, as after a crash.
      const late = `${method} took longer than the ${seconds} s of its customTimeouts`;
      const error = new RetryableError("Timeout", late);
      end.abort(error);
      return error;
    });
  }

  /** From now on, none of its calls writes. */
  close(): void {
    this.#end.abort(new RetryableError("UpdateEnded", "the update that this belongs to has ended"));
  }
}

const METHODS: Readonly<Record<string, Method>> = {
  async Check(session, { urn, olds = {}, news = {} }, context) {
    if (session.options.keepsGiven) session.given.set(urn, { news });
    const { inputs, failures } = await providerOf(session, news, olds).check(olds, news, context);
    for (const { property, reason } of failures) {
      session.failures.push({ urn, errorClass: "terminal", reason: "Invalid", message: `${property}: ${reason}` });
    }
    return { inputs: withStub(inputs, news), failures };
  },
  async Diff(session, { urn, id = "", olds = {}, news = {} }, context) {
    if (session.options.keepsGiven) session.given.set(urn, { olds, news });
    const {
      changes,
      replaces = [],
      deleteBeforeReplace = false,
    } = await providerOf(session, news, olds).diff(id, olds, news, context);
    return { changes: changes ? "DIFF_SOME" : "DIFF_NONE", replaces, deleteBeforeReplace };
  },
  async Observe(session, { urn, operation = "Create", olds, news }, context) {
    const { observe } = providerOf(session, news ?? {}, olds ?? {});
    const live = await observe?.(news, olds, context);
    if (observe !== undefined) {
      session.observed.set(urn, withObserved(session.observed.get(urn), urn, operation, live, news));
    }
    return {};
  },
  async Create(session, { urn, properties = {} }, context) {
    const provider = providerOf(session, properties);
    const { id, outs } = await provider.create(properties, held(session, urn, "Create", provider, context));
    return { id, properties: withStub(outs, properties) };
  },
  async Read(session, { id = "", properties = {}, inputs }, context) {
    const result = await providerOf(session, properties).read(id, properties, context);
    if (result.id === undefined) return {};
    return { id: result.id, properties: withStub(result.props, properties), ...(inputs && { inputs }) };
  },
  async Update(session, { urn, id = "", olds = {}, news = {} }, context) {
    const provider = providerOf(session, news);
    const { outs } = await provider.update(id, olds, news, held(session, urn, "Update", provider, context));
    return { properties: withStub(outs, news) };
  },
  async Delete(session, { urn, id = "", properties = {} }, context) {
    const provider = providerOf(session, properties);
    const method = session.options.release ? "release" : "delete";
    await provider[method](id, properties, held(session, urn, "Delete", provider, context));
    return {};
  },
};

/** The context of a write, which is held to what was observed if the update is. @throws RetryableError `PlanOutdated` */
function held(
  { options: { observed } }: ProviderSession,
  urn: string,
  call: WriteCall,
  { observe }: AnyProvider,
  context: ProviderContext,
): ProviderContext {
  const isHeld = observed !== undefined && observe !== undefined;
  return isHeld ? { ...context, hold: holdOf(observed, urn, call) } : context;
}

function providerOf(session: ProviderSession, ...candidates: Properties[]): AnyProvider {
  // The engine sends a placeholder instead of the stub where a preview does not know it yet.
  for (const { [PROVIDER_PROPERTY]: stub } of candidates) {
    const provider = session.providerOf(stub as string);
    if (provider !== undefined) return provider;
  }
  throw new Error(
    "the state names a dynamic provider that is not Kindstack's; the operator runs no code that it finds in a state",
  );
}

function withStub(values: object, { [PROVIDER_PROPERTY]: stub }: Properties): Properties {
  return { ...values, [PROVIDER_PROPERTY]: stub };
}

/** The dynamic providers of this process, which the engine asks while it runs updates. */
export class ProviderHost {
  /** @param providers the provider behind each stub that the state may hold */
  constructor(private providers: ReadonlyMap<string, AnyProvider>) {}

  /** Serves these providers in place of those given before. */
  serve(providers: ReadonlyMap<string, AnyProvider>): void {
    this.providers = providers;
  }

  /**
   * Answers the calls of one update until the session is closed. Calls after that are refused, and those that still run
   * write nothing more.
   */
  openSession(options: SessionOptions): ProviderSession {
    return new ProviderSession(options, (stub) => this.providers.get(stub));
  }
}
