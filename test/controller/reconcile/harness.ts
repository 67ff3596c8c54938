import { createSecretKey } from "node:crypto";
import pino from "pino";
import { expect, vi } from "vitest";
import { type Fence, noFence } from "../../../providers/fence";
import { ApiError, type KubernetesClient, type LiveObject, type Manifest } from "../../../providers/kubernetes/client";
import { OBJECT_STUB } from "../../../providers/kubernetes/object";
import { ownedFieldsDigest } from "../../../providers/kubernetes/ownership";
import { withObserved } from "../../../providers/observation";
import type { WorkContext } from "../../../providers/provider";
import type { PreviewResult, StackPreviewOptions, UpOptions, UpResult } from "../../../src/automation/engine";
import type { UpdateFailure } from "../../../src/automation/event-log";
import type { BindingPlan, PlannedChange } from "../../../src/automation/planned-changes";
import type { Refusal } from "../../../src/backend/ownership";
import { Claims } from "../../../src/controller/claims";
import type { KindContext, Result } from "../../../src/controller/context";
import type { EventRecorder } from "../../../src/controller/event-recorder";
import type { CachedView, KindCache } from "../../../src/controller/kind-cache";
import { type ObjectItem, objectItem } from "../../../src/controller/object-item";
import { ObjectWriter } from "../../../src/controller/object-writer";
import type { PlanDecision } from "../../../src/controller/plan-decision";
import type { Plans } from "../../../src/controller/plan-store";
import { Reconciler } from "../../../src/controller/reconcile";
import { REVERTS_OF_CONFLICT } from "../../../src/controller/repairs";
import { planDigests } from "../../../src/plan/digest";
import { RECONCILE_ANNOTATION, STATE_MISSING_ANNOTATION, settingsOf } from "../../../stacks/contract/annotations";
import { mayApprove } from "../../../stacks/contract/author-policy";
import type { LiveState } from "../../../stacks/contract/capabilities";
import { type Condition, findCondition } from "../../../stacks/contract/condition";
import { type AnyKind, statusOf } from "../../../stacks/contract/kind";
import type { Mode } from "../../../stacks/contract/mode";
import type { Plan } from "../../../stacks/contract/plan";
import { memcached } from "../../../stacks/kinds/memcached/kind";
import { upResult } from "../../automation/up-result";
import { applied } from "../../objects";
import { lookupOf } from "../../providers/kubernetes/lookup-of";

/*
 * A reconciler between an API server and an engine that are played: what takes minutes in the harness, a conflict with
 * another controller and its end, takes none here. What it does with the real ones is tested end to end.
 */
export const KEY = "default/cache";
const TYPE = { apiVersion: "cache.example.com/v1alpha1", kind: "Memcached", plural: "memcacheds", namespaced: true };
export const DEPLOYMENT: Manifest = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "cache", namespace: "default" },
  spec: { replicas: 1 },
};
/** The status of a Deployment that works. */
const WORKING = {
  replicas: 1,
  updatedReplicas: 1,
  readyReplicas: 1,
  availableReplicas: 1,
  conditions: [{ type: "Available", status: "True" }],
};
const OURS = { "f:spec": { "f:replicas": {} } };

export const PLAN = {} as BindingPlan;
const LOST: UpdateFailure = { errorClass: "terminal", reason: "StateMissing", message: "the stack is not there" };

const WRITES = ["apply", "replaceStatus", "mergePatch", "patchExactly", "delete"];

/** A client that writes only under a fence. */
function clientOf(requests: Record<string, (...args: never[]) => unknown>): KubernetesClient {
  const under = (fence: Fence): object =>
    Object.fromEntries(
      Object.entries(requests).map(([name, request]) => {
        const checked = async (...args: never[]) => {
          if (WRITES.includes(name)) fence.check();
          return request(...args);
        };
        return [name, checked];
      }),
    );
  const none = () => {
    throw new Error("a write without a fence");
  };
  return { ...under({ ...noFence(), check: none }), within: under } as KubernetesClient;
}

function fenceOf({ context }: UpOptions): Fence {
  if (context === undefined) throw new Error("an operation without a fence");
  return context.fence;
}

/** The cluster, with one Memcached and its Deployment, and everything that happens to them. */
export class Harness {
  #version = 100;
  #edited = false;
  readonly events: string[] = [];
  readonly notes: string[] = [];
  /** The stacks whose destroy the backend may forget. */
  readonly forgotten: string[] = [];
  updates = 0;
  previews = 0;
  /** How often a less strict mode held than before. */
  loosened = 0;
  mode: Mode = "Apply";
  /** The plan that is there. */
  plan: Plan | undefined;
  /** What was decided, by digest. */
  readonly decisions = new Map<string, PlanDecision>();
  /** What each update and destroy was held to. */
  readonly held: (BindingPlan | undefined)[] = [];
  readonly plans: { -readonly [K in keyof Plans]: Plans[K] } = {
    get: () => this.plan,
    decisionOn: (_kind, _object, digest, authors) => {
      const decision = this.decisions.get(digest);
      const counts = decision?.decision !== "Approve" || mayApprove(authors, decision.approver);
      return counts ? decision : { ...decision, decision: "Ignored" };
    },
    authorMayNotApprove: false,
    write: async ({ client }, object, spec, status) => {
      await client.apply({ ...object, kind: "Plan" });
      this.plan = { ...object, spec, status };
    },
    remove: async ({ client }) => {
      await client.delete({ apiVersion: "v1", kind: "Plan" }, "cache");
      this.plan = undefined;
    },
    digests: async (basis) => planDigests(createSecretKey(Buffer.alloc(32)), basis),
  };
  /** What an update would do. */
  planned: PlannedChange[] = [];
  object: LiveObject = {
    ...TYPE,
    metadata: {
      name: "cache",
      namespace: "default",
      uid: "uid-cache",
      resourceVersion: "100",
      generation: 1,
      finalizers: ["kindstack.dev/stack"],
    },
    spec: { size: 1, containerPort: 11211 },
  };
  /** What the cache shows, where it is behind. */
  shown: LiveObject | undefined;
  /** Whether the cache is known to show the object as it is. */
  cacheIsFresh = false;
  /** How often the object was read, not looked up in the cache. */
  reads = 0;
  shownOwned: LiveObject[] | undefined;
  /** What the cache shows of what the object refers to. */
  reference: CachedView | undefined;
  secret: LiveObject | undefined;
  /** Whether the state's backend is the operator's. */
  readonly backend: { refusal: Refusal | undefined } & KindContext["backend"] = {
    refusal: undefined,
    problem: async () => this.backend.refusal,
  };
  /** Whether the backend lacks the stack. */
  lost = false;
  /** Why updates fail. */
  refusal: UpdateFailure | undefined;
  /** How many writes of the status fail from now on. */
  refusedWrites = 0;
  /** Whether the API server does not know the type of what the object owns. */
  unserved = false;
  /** Whether the API server lists nothing. */
  away = false;
  /** What the next destroys come to. */
  readonly destroys: UpResult[] = [];
  /** Whether each destroy left the resources behind. */
  readonly released: boolean[] = [];
  /** Why updates ran. */
  readonly causes: string[] = [];
  /** Whether updates are interrupted, and leave what the state does not have. */
  interrupted = false;
  unrecorded = false;
  /** What providers do in an update. */
  inUpdate: (context: WorkContext | undefined) => Promise<void> = async () => {};
  /** Whether the last update was told to stop. */
  isStopped: boolean | undefined;
  /** What writes of the status wait for. */
  statusWrites: Promise<void> = Promise.resolve();
  readonly program = vi.fn<AnyKind["program"]>();
  deployment: LiveObject | undefined = this.#deployment(true);
  readonly reconciler: Reconciler;
  readonly #item: ObjectItem;

  constructor(
    kind: AnyKind = memcached,
    digest = "digest",
    readonly servesPlans = true,
  ) {
    const played = { ...kind, program: this.program };
    const cache: KindCache = {
      object: () => this.shown ?? this.object,
      owned: () => this.shownOwned ?? this.#owned,
      watched: () => [],
      view: () => ({ object: this.deployment, cacheVersion: String(this.#version) }),
      unserved: () => undefined,
      tombstone: () => undefined,
      referenced: () => this.reference,
      describeOwner: () => undefined,
    };
    const requests = {
      apply: async ({ kind }: { kind: string }) => ({
        object: kind === DEPLOYMENT.kind ? this.deployment : this.object,
        created: false,
      }),
      replaceStatus: async (_object: unknown, status: object) => {
        await this.statusWrites;
        if (this.refusedWrites-- > 0) throw new ApiError(503, "ServiceUnavailable", "away");
        const resourceVersion = String(++this.#version);
        this.object = { ...this.object, status, metadata: { ...this.object.metadata, resourceVersion } };
        return this.object;
      },
      mergePatch: async (_object: unknown, _name: string, _namespace: string, { metadata }: LiveObject) => {
        this.setMetadata({ annotations: { ...this.object.metadata.annotations, ...metadata.annotations } });
        return this.object;
      },
      patchExactly: async (_object: unknown, operations: { op: string; path: string }[]) => {
        const isDecision = operations.some(({ op, path }) => op === "remove" && path.includes("annotations"));
        if (isDecision) this.decide(undefined);
        return this.object;
      },
      list: async () => {
        if (this.away) throw new ApiError(503, "ServiceUnavailable", "away");
        if (this.unserved) throw new ApiError(404, "UnknownKind", "there is no Deployment");
        return { items: this.#owned };
      },
      delete: async () => undefined,
      listInAnyVersion: async () => this.#owned,
      find: async ({ kind }: { kind: string }) => {
        if (kind === TYPE.kind) this.reads++;
        return lookupOf(kind === "Secret" ? this.secret : kind === TYPE.kind ? this.object : this.deployment);
      },
    };
    const client = clientOf(requests);
    const engine: KindContext["engine"] = {
      up: async (_stack: string, program: () => void | Promise<void>, options: UpOptions) => {
        fenceOf(options).check();
        this.held.push(options.plan);
        if (this.lost && options.object?.mustExist) return upResult({ result: "failed" }, { failures: [LOST] });
        await program();
        if (this.refusal !== undefined) return this.#refused(this.refusal);
        if (this.lost) {
          this.lost = false;
          return { ...this.#up(), found: false };
        }
        await this.inUpdate(options.context);
        this.isStopped = options.stop?.aborted;
        if (this.interrupted) return { ...this.#up(), interrupted: true, unrecorded: this.unrecorded };
        return this.#up();
      },
      previewDestroy: async () => {
        this.previews++;
        return this.#preview();
      },
      destroy: async (_stack: string, options: { release: boolean } & UpOptions) => {
        fenceOf(options).check();
        this.held.push(options.plan);
        if (this.lost && options.object?.mustExist) return upResult({ result: "failed" }, { failures: [LOST] });
        this.released.push(options.release);
        const result = this.destroys.shift();
        if (result === undefined) throw new Error("nothing is to be destroyed");
        return result;
      },
      preview: async (_stack: string, program: () => void, options: StackPreviewOptions) => {
        this.previews++;
        if (this.lost)
          return { exists: false, changes: this.planned, failures: options.object?.mustExist ? [LOST] : [] };
        program();
        return this.#preview();
      },
      listStacks: async () => [],
      forgetDestroyed: async () => {},
    };
    const recorder: Pick<EventRecorder, "event" | "wrote"> = {
      wrote: () => {},
      event: (_object, _type, reason, note) => {
        this.events.push(reason);
        this.notes.push(note);
      },
    };
    const metrics: KindContext["metrics"] = {
      ran: (_, cause) => void this.causes.push(cause),
      loosened: () => void this.loosened++,
    };
    this.reconciler = new Reconciler({
      kind: played,
      programDigest: digest,
      planKey: async () => createSecretKey(Buffer.from("key")),
      cluster: undefined,
      client,
      cache,
      engine,
      backend: this.backend,
      forgetDestroyed: (stack) => void this.forgotten.push(stack),
      writer: new ObjectWriter({
        kind: played,
        client,
        cache,
        freshness: { holds: () => this.cacheIsFresh, wrote: () => {} },
        recorder,
        metrics,
      }),
      claims: new Claims(
        () => {},
        () => true,
      ),
      plans: this.servesPlans ? this.plans : undefined,
      readSettings: async (object) => settingsOf(object, undefined, this.mode),
      metrics,
      logger: pino({ level: "silent" }),
    });
    this.#item = objectItem(played, { namespace: "default", name: "cache" });
  }

  #preview(): PreviewResult {
    const creations = this.deployment ? [] : this.planned.filter(({ operation }) => operation === "create");
    const deletions = this.planned.filter(({ operation }) => operation === "delete");
    const live = this.deployment ?? null;
    const observed = new Map([
      ...creations.map(({ urn }) => [urn, withObserved(undefined, urn, "Create", null, {})] as const),
      ...deletions.map(({ urn }) => [urn, withObserved(undefined, urn, "Delete", live, undefined)] as const),
    ]);
    return { exists: true, changes: this.planned, failures: [], plan: PLAN, observed };
  }

  get #owned(): LiveObject[] {
    return this.deployment === undefined ? [] : [this.deployment];
  }

  reconcile(fence = noFence()) {
    return this.reconciler.reconcile(this.#item, new AbortController().signal, fence);
  }

  /** Reconciles until nothing is left to do at once. */
  async settle(): Promise<Result> {
    for (let times = 0; times < 5; times++) {
      const result = await this.reconcile();
      if (typeof result !== "object" || !("requeueAfterMs" in result) || result.requeueAfterMs > 0) return result;
    }
    throw new Error("it is reconciled again and again");
  }

  /** A user changes the object: a new generation. */
  changeSpec(generation = 2): void {
    this.setMetadata({ generation, resourceVersion: "999" });
  }

  /** A user asks for an update. */
  request(): void {
    this.setMetadata({ annotations: { [RECONCILE_ANNOTATION]: "now" }, resourceVersion: String(++this.#version) });
  }

  /** A user deletes the object. @returns the failure of a destroy that waits for the Deployment */
  delete(): UpdateFailure {
    this.setMetadata({ deletionTimestamp: "2026-01-01T00:00:00Z" });
    const { deployment: object } = this;
    return { errorClass: "pending", reason: "Terminating", message: "", ...(object && { object }) };
  }

  /** A user sets a field that is Kindstack's. */
  edit(): void {
    this.#edited = true;
    this.deployment = this.#deployment(false);
  }

  /** A user deletes what Kindstack made. */
  remove(): void {
    this.deployment = undefined;
    this.#version++;
  }

  /** What Kindstack made comes to its end by itself. */
  end(): void {
    if (this.deployment !== undefined) this.deployment = { ...this.deployment, status: "ended" };
  }

  /** What has ended is there again, by another owner's doing. */
  mend(): void {
    if (this.deployment !== undefined) this.deployment = { ...this.deployment, status: WORKING };
  }

  /** What a user decides for a state that is lost. */
  decide(decision: string | undefined): void {
    const { [STATE_MISSING_ANNOTATION]: _, ...others } = this.object.metadata.annotations ?? {};
    const annotations = { ...others, ...(decision !== undefined && { [STATE_MISSING_ANNOTATION]: decision }) };
    this.setMetadata({ annotations, resourceVersion: String(++this.#version) });
  }

  condition(type: string): Condition | undefined {
    return findCondition(statusOf(this.object).conditions, type);
  }

  stalled = () => this.condition("Stalled");
  reconciling = () => this.condition("Reconciling");
  synced = () => this.condition("Synced");
  ready = () => this.condition("Ready");
  fieldConflict = () => this.condition("FieldConflict");

  setMetadata(changes: Partial<LiveObject["metadata"]>): void {
    this.object = { ...this.object, metadata: { ...this.object.metadata, ...changes } };
  }

  #up(): UpResult {
    this.updates++;
    const isEdited = this.#edited;
    this.#edited = false;
    const deployment = this.#deployment(true);
    this.deployment = deployment;
    const outputs = {
      __provider: OBJECT_STUB,
      manifest: DEPLOYMENT,
      resourceVersion: deployment.metadata.resourceVersion,
      fields: ownedFieldsDigest(deployment),
    };
    const corrected = [{ field: "spec.replicas", wanted: 1, live: 5, by: "someone" }];
    const resource = {
      ...({ urn: "urn", type: "t", name: "deployment/cache", operation: "update", outputs } as const),
      ...(isEdited && { corrected }),
    };
    return upResult({ resourceChanges: { update: 1 } }, { resources: [resource] });
  }

  #refused(failure: UpdateFailure): UpResult {
    this.updates++;
    return upResult({ result: "failed" }, { failures: [failure], restDone: true });
  }

  #deployment(whole: boolean): LiveObject {
    const managedFields = whole
      ? [applied("kindstack", OURS)]
      : [applied("kindstack", {}), { manager: "someone", operation: "Update" as const, fieldsV1: OURS }];
    const resourceVersion = String(++this.#version);
    return {
      ...DEPLOYMENT,
      metadata: { name: "cache", namespace: "default", uid: "d", resourceVersion, managedFields },
      status: WORKING,
    };
  }
}

export const destroyed: typeof upResult = (summary, rest) => upResult({ kind: "destroy", ...summary }, rest);

/** A kind with other capabilities. */
export const kindWith = (capabilities: AnyKind["capabilities"]): AnyKind => ({ ...memcached, capabilities });

/** A kind whose program depends on what is alive. */
export const counting = (liveState: Omit<LiveState<unknown, unknown>, "reads">) =>
  kindWith({ liveState: { reads: [{ apiVersion: "apps/v1", kind: "Deployment" }], ...liveState } });

/** An object that was reconciled once. */
export async function reconciled(...harness: ConstructorParameters<typeof Harness>): Promise<Harness> {
  const made = new Harness(...harness);
  await made.reconcile();
  return made;
}

/** An object that a user edited some time after each repair, one time too often. */
export async function fieldConflict(harness = new Harness(), everyMs = 1_000): Promise<Harness> {
  await harness.reconcile();
  for (let repair = 0; repair < REVERTS_OF_CONFLICT; repair++) {
    expect(harness.fieldConflict()).toBeUndefined();
    vi.advanceTimersByTime(everyMs);
    harness.edit();
    await harness.reconcile();
  }
  return harness;
}
