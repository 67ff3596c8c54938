import { createSecretKey } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import pino from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RetryableError } from "../../providers/errors";
import { type Fence, openFence } from "../../providers/fence";
import { ApiError, type KubernetesClient, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import { ownedFieldsDigest } from "../../providers/kubernetes/ownership";
import { withObserved } from "../../providers/observation";
import type { BindingPlan } from "../../src/automation/binding-plan";
import type { PreviewOptions, PreviewResult, UpOptions, UpResult } from "../../src/automation/engine";
import type { UpdateFailure } from "../../src/automation/failures";
import type { PlannedChange } from "../../src/automation/planned-changes";
import type { Refusal } from "../../src/backend/ownership";
import { Claims } from "../../src/controller/claims";
import type { KindContext, Result } from "../../src/controller/context";
import type { EventRecorder } from "../../src/controller/event-recorder";
import type { CachedView, KindCache } from "../../src/controller/kind-cache";
import { type ObjectItem, objectItem } from "../../src/controller/object-item";
import { ObjectWriter } from "../../src/controller/object-writer";
import type { PlanDecision } from "../../src/controller/plan-decision";
import type { Plans } from "../../src/controller/plan-store";
import { Reconciler } from "../../src/controller/reconcile";
import { REVERTS_OF_CONFLICT } from "../../src/controller/repairs";
import { planDigests } from "../../src/plan/digest";
import {
  AUTHOR_ANNOTATION,
  DELETION_POLICY_ANNOTATION,
  ORPHANED_ANNOTATION,
  RECONCILE_ANNOTATION,
  STATE_MISSING_ANNOTATION,
} from "../../stacks/contract/annotations";
import { mayApprove } from "../../stacks/contract/author-policy";
import type { LiveState, Maintenance } from "../../stacks/contract/capabilities";
import { findCondition } from "../../stacks/contract/condition";
import { type AnyKind, statusOf } from "../../stacks/contract/kind";
import type { Mode } from "../../stacks/contract/mode";
import { objectId } from "../../stacks/contract/object";
import type { Plan } from "../../stacks/contract/plan";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { upResult } from "../automation/up-result";
import { applied } from "../objects";
import { lookupOf } from "../providers/kubernetes/lookup-of";

/*
 * A reconciler between an API server and an engine that are played: what takes minutes in the harness, a conflict with
 * another controller and its end, takes none here. What it does with the real ones is tested end to end.
 */

const KEY = "default/cache";
const TYPE = { apiVersion: "cache.example.com/v1alpha1", kind: "Memcached", plural: "memcacheds", namespaced: true };
const DEPLOYMENT: Manifest = {
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

const PLAN = {} as BindingPlan;
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
  return { ...under({ ...openFence(), check: none }), within: under } as unknown as KubernetesClient;
}

function fenceOf({ context }: UpOptions): Fence {
  if (context === undefined) throw new Error("an operation without a fence");
  return context.fence;
}

/** The cluster, with one Memcached and its Deployment, and everything that happens to them. */
class Harness {
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
  /** Whether the engine holds updates to plans. */
  binds = true;
  /** What was decided, by digest. */
  readonly decisions = new Map<string, PlanDecision>();
  /** What each update and destroy was held to. */
  readonly held: (BindingPlan | undefined)[] = [];
  readonly plans: { -readonly [K in keyof Plans]: Plans[K] } = {
    get: () => this.plan,
    find: (_kind, _object, digest, authors) => {
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
  /** Whether the state of the stack can be read. */
  unreadable = false;
  /** Why updates ran. */
  readonly causes: string[] = [];
  /** Whether updates are interrupted. */
  interrupted = false;
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
        const annotations = { ...this.object.metadata.annotations, ...metadata.annotations };
        this.object = { ...this.object, metadata: { ...this.object.metadata, annotations } };
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
      up: async (_stack: string, program: () => void, options: UpOptions) => {
        fenceOf(options).check();
        this.held.push(options.plan);
        if (this.lost && options.object?.mustExist) return upResult({ result: "failed" }, { failures: [LOST] });
        program();
        if (this.refusal !== undefined) return this.#refused(this.refusal);
        if (this.lost) {
          this.lost = false;
          return { ...this.#up(), found: false };
        }
        if (this.interrupted) return { ...this.#up(), interrupted: true };
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
      preview: async (_stack: string, program: () => void, options: PreviewOptions) => {
        this.previews++;
        if (this.lost)
          return { exists: false, changes: this.planned, failures: options.object?.mustExist ? [LOST] : [] };
        program();
        return this.#preview();
      },
      exportStack: async () => {
        if (this.unreadable) throw new RetryableError("Unreadable", "away");
        return {
          version: 3,
          deployment: { resources: [{ urn: "urn:pulumi:stack::kindstack::other", type: "other" }] },
        };
      },
      removeStack: () => Promise.reject(new Error("nothing is to be destroyed")),
      listStacks: async () => [],
      forgetDestroyed: async () => {},
    };
    const recorder = {
      event: (...[, , reason = "", note = ""]: string[]) => {
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
        recorder: recorder as unknown as EventRecorder,
        metrics,
      }),
      claims: new Claims(
        () => {},
        () => true,
      ),
      plans: this.servesPlans ? this.plans : undefined,
      modeOf: async () => ({ mode: this.mode }),
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
    const bound = this.binds ? { plan: PLAN, observed } : {};
    return { exists: true, changes: this.planned, failures: [], ...bound };
  }

  get #owned(): LiveObject[] {
    return this.deployment === undefined ? [] : [this.deployment];
  }

  reconcile(fence = openFence()) {
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
    this.object = { ...this.object, metadata: { ...this.object.metadata, generation, resourceVersion: "999" } };
  }

  /** A user asks for an update. */
  request(): void {
    const annotations = { [RECONCILE_ANNOTATION]: "now" };
    this.object = { ...this.object, metadata: { ...this.object.metadata, annotations, resourceVersion: "999" } };
  }

  /** A user deletes the object. @returns the failure of a destroy that waits for the Deployment */
  delete(): UpdateFailure {
    const metadata = { ...this.object.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
    this.object = { ...this.object, metadata };
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
    const resourceVersion = String(++this.#version);
    this.object = { ...this.object, metadata: { ...this.object.metadata, annotations, resourceVersion } };
  }

  stalled() {
    return findCondition(statusOf(this.object).conditions, "Stalled");
  }

  reconciling() {
    return findCondition(statusOf(this.object).conditions, "Reconciling");
  }

  synced() {
    return findCondition(statusOf(this.object).conditions, "Synced");
  }

  fieldConflict() {
    return findCondition(statusOf(this.object).conditions, "FieldConflict");
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

describe("a reconcile of a shard that is lost", () => {
  const lost: Fence = {
    check() {
      throw new RetryableError("LeaseLost", "another replica continues");
    },
    signal: AbortSignal.abort(),
  };

  it.each<[string, (harness: Harness) => void]>([
    ["an update", () => {}],
    ["an update with its first finalizer", (harness) => delete harness.object.metadata.finalizers],
    ["a destroy", (harness) => void harness.delete()],
    ["a proposal", (harness) => Object.assign(harness, { mode: "Propose" })],
    ["a comparison", (harness) => Object.assign(harness, { mode: "Observe" })],
  ])("writes neither the object nor its stack: %s", async (_, prepare) => {
    const harness = new Harness();
    prepare(harness);
    const before = structuredClone(harness.object);
    await harness.reconcile(lost).catch(() => "refused");
    expect(harness.object).toEqual(before);
    expect([harness.updates, harness.released, harness.plan]).toEqual([0, [], undefined]);
  });
});

describe("while the state's backend is not the operator's", () => {
  const refusal: Refusal = {
    errorClass: "retryable",
    reason: "BackendForeign",
    message: "the state's backend belongs to another cluster",
    dependency: "the state's backend",
  };
  const stalled = (harness: Harness) => findCondition(statusOf(harness.object).conditions, "Stalled");
  const refused = { dependency: refusal.dependency };

  it("nothing is updated or destroyed, and the object says why", async () => {
    const harness = new Harness();
    harness.backend.refusal = refusal;
    expect(await harness.reconcile()).toEqual(refused);
    expect(harness.synced()).toMatchObject({ status: "False", reason: "BackendForeign", message: refusal.message });
    harness.delete();
    expect(await harness.settle()).toEqual(refused);
    expect(harness.synced()).toMatchObject({ status: "False", reason: "DeletionFailed" });
    expect(harness.synced()?.message).toContain(refusal.message);
    expect([harness.updates, harness.released]).toEqual([0, []]);
  });

  it("nothing is compared for an object that is only observed", async () => {
    const harness = new Harness();
    harness.mode = "Observe";
    harness.backend.refusal = refusal;
    expect(await harness.reconcile()).toEqual(refused);
    expect(harness.synced()).toMatchObject({ status: "False", reason: "BackendForeign" });
    expect(harness.previews).toBe(0);
  });

  it("an object at rest is stalled, and no more afterwards, without an update", async () => {
    const harness = new Harness();
    await harness.reconcile();
    harness.backend.refusal = refusal;
    expect(await harness.reconcile()).toBe("done");
    expect(stalled(harness)).toMatchObject({ status: "True", reason: "BackendForeign", message: refusal.message });
    expect(harness.synced()?.status).toBe("True");
    harness.backend.refusal = undefined;
    expect(await harness.reconcile()).toBe("done");
    expect(stalled(harness)).toBeUndefined();
    expect(harness.updates).toBe(1);
  });

  it("a failure that only the user can correct is told of again afterwards", async () => {
    const harness = new Harness();
    harness.refusal = { errorClass: "terminal", reason: "Invalid", message: "wrong" };
    await harness.reconcile();
    harness.backend.refusal = refusal;
    await harness.reconcile();
    expect(stalled(harness)?.reason).toBe("BackendForeign");
    harness.backend.refusal = undefined;
    await harness.reconcile();
    expect(stalled(harness)).toMatchObject({ status: "True", reason: "Invalid", message: "wrong" });
    expect(harness.updates).toBe(1);
  });
});

describe("an update that has to wait until something is gone", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const object = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "cache", namespace: "default", uid: "d" },
  };
  const refusal = { errorClass: "pending", reason: "Terminating", message: "is being deleted", object } as const;
  async function waiting(refusal: UpdateFailure): Promise<Harness> {
    const harness = new Harness();
    harness.refusal = refusal;
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: expect.any(Number) });
    return harness;
  }
  const ready = (harness: Harness) => findCondition(statusOf(harness.object).conditions, "Ready");

  it("says so without an event, and is not repeated while that is there", async () => {
    const harness = await waiting(refusal);
    expect(ready(harness)).toMatchObject({ status: "False", reason: "Terminating", message: "is being deleted" });
    expect(harness.reconciling()).toMatchObject({ status: "True", reason: "Waiting" });
    expect(harness.events).toEqual([]);
    for (let minute = 0; minute < 10; minute++) {
      vi.advanceTimersByTime(60_000);
      await harness.reconcile();
    }
    expect(harness.updates).toBe(1);
    expect(ready(harness)?.message).toBe("Deployment cache is being deleted");
  });

  it("is repeated as soon as a cache shows that it is gone", async () => {
    const harness = await waiting(refusal);
    harness.remove();
    harness.refusal = undefined;
    expect(await harness.reconcile()).toBe("done");
    expect(ready(harness)?.status).toBe("True");
    expect(harness.reconciling()).toBeUndefined();
  });

  it("is repeated at once for another spec, or when the object was asked to be updated", async () => {
    const harness = await waiting(refusal);
    const { metadata } = harness.object;
    harness.object = { ...harness.object, metadata: { ...metadata, generation: 2, resourceVersion: "999" } };
    await harness.reconcile();
    expect(harness.updates).toBe(2);
    const annotations = { "kindstack.dev/reconcile": "now" };
    harness.object = {
      ...harness.object,
      metadata: { ...harness.object.metadata, annotations, resourceVersion: "9999" },
    };
    await harness.reconcile();
    expect(harness.updates).toBe(3);
  });

  it("is repeated after a modest time where nothing shows what it waits for", async () => {
    const { object: _, ...unnamed } = refusal;
    const harness = await waiting(unnamed);
    for (const updates of [2, 3, 4]) {
      vi.advanceTimersByTime(5_000);
      expect(await harness.reconcile()).toEqual({ requeueAfterMs: 5_000 });
      expect(harness.updates).toBe(updates);
    }
  });
});

const destroyed: typeof upResult = (summary, rest) => upResult({ kind: "destroy", ...summary }, rest);

it("a destroy that is interrupted after a wait still knows what the one before has deleted", async () => {
  const harness = new Harness();
  await harness.reconcile();
  const pending = harness.delete();
  harness.destroys.push(
    destroyed({ result: "failed", resourceChanges: { delete: 2 } }, { failures: [pending] }),
    destroyed({ result: "failed" }, { interrupted: true }),
    destroyed({ resourceChanges: { delete: 1 } }),
  );
  expect(await harness.reconcile()).toEqual({ requeueAfterMs: expect.any(Number) });
  harness.remove();
  expect(await harness.reconcile()).toBe("retry");
  expect(await harness.reconcile()).toBe("done");
  expect(harness.notes.at(-1)).toBe("3 deleted");
});

it.each([
  ["by its annotation", { annotations: { [DELETION_POLICY_ANNOTATION]: "Orphan" } }],
  ["by a second deletion, with --cascade=orphan", { finalizers: ["orphan", "kindstack.dev/stack"] }],
])("a destroy that waits is over at once when what it waits for is to stay: %s", async (_, metadata) => {
  const harness = new Harness();
  await harness.reconcile();
  harness.destroys.push(destroyed({ result: "failed" }, { failures: [harness.delete()] }), destroyed({}));
  expect(await harness.reconcile()).toEqual({ requeueAfterMs: expect.any(Number) });
  harness.object = { ...harness.object, metadata: { ...harness.object.metadata, ...metadata, resourceVersion: "999" } };
  expect(await harness.reconcile()).toBe("done");
  expect(harness.released).toEqual([false, true]);
});

it("a destroy whose state cannot be read when its wait is over says so", async () => {
  const harness = new Harness();
  await harness.reconcile();
  const pending = harness.delete();
  const unreadable: UpdateFailure = { errorClass: "retryable", reason: "Unreadable", message: "away" };
  harness.destroys.push(
    destroyed({ result: "failed" }, { failures: [pending] }),
    destroyed({ result: "failed" }, { failures: [unreadable] }),
  );
  await harness.reconcile();
  harness.remove();
  harness.unreadable = true;
  expect(await harness.reconcile()).toEqual({ dependency: "Unreadable" });
  expect(findCondition(statusOf(harness.object).conditions, "Ready")?.reason).toBe("DeletionFailed");
  expect(harness.events.at(-1)).toBe("DeletionFailed");
});

it("an update that is interrupted is not over before the report of its progress has landed", async () => {
  const harness = new Harness();
  await harness.reconcile();
  harness.request();
  harness.interrupted = true;
  let land = () => {};
  harness.statusWrites = new Promise((resolve) => {
    land = resolve;
  });
  let over = false;
  const reconciled = harness.reconcile().finally(() => {
    over = true;
  });
  await setImmediate();
  expect(harness.updates).toBe(2);
  expect(over).toBe(false);
  land();
  expect(await reconciled).toBe("retry");
});

/** A kind with other capabilities. */
const kindWith = (capabilities: AnyKind["capabilities"]): AnyKind => ({ ...memcached, capabilities });
/** A kind whose program depends on what is alive. */
const counting = (liveState: Omit<LiveState<unknown, unknown>, "reads">) =>
  kindWith({ liveState: { reads: [{ apiVersion: "apps/v1", kind: "Deployment" }], ...liveState } });

/** An object that a user edited some time after each repair, one time too often. */
async function fieldConflict(harness = new Harness(), everyMs = 1_000): Promise<Harness> {
  await harness.reconcile();
  for (let repair = 0; repair < REVERTS_OF_CONFLICT; repair++) {
    expect(harness.fieldConflict()).toBeUndefined();
    vi.advanceTimersByTime(everyMs);
    harness.edit();
    await harness.reconcile();
  }
  return harness;
}

describe("a conflict", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("is told in a condition and an event, with the field and its other manager", async () => {
    const harness = await fieldConflict();
    expect(harness.fieldConflict()).toMatchObject({
      status: "True",
      reason: "RepairsReverted",
      message: expect.stringContaining("Deployment default/cache: spec.replicas is 5 in place of 1: set by someone"),
    });
    expect(harness.events.filter((reason) => reason === "FieldConflict")).toHaveLength(1);
  });

  it("is also one when what was made is deleted again and again", async () => {
    const harness = new Harness();
    await harness.reconcile();
    for (let repair = 0; repair < REVERTS_OF_CONFLICT; repair++) {
      harness.remove();
      await harness.reconcile();
    }
    expect(harness.fieldConflict()).toMatchObject({
      status: "True",
      message: expect.stringContaining("Deployment default/cache is deleted by another client"),
    });
  });

  it("is not answered until the time has come, and each time later", async () => {
    const harness = await fieldConflict();
    for (const seconds of [10, 20, 40]) {
      harness.edit();
      const before = harness.updates;
      expect(await harness.reconcile()).toEqual({ requeueAfterMs: seconds * 1_000 });
      vi.advanceTimersByTime(seconds * 1_000 - 1);
      await harness.reconcile();
      expect(harness.updates).toBe(before);
      vi.advanceTimersByTime(1);
      await harness.reconcile();
      expect(harness.updates).toBe(before + 1);
    }
  });

  it("does not keep a new spec from being applied", async () => {
    const harness = await fieldConflict();
    harness.edit();
    const before = harness.updates;
    harness.changeSpec();
    await harness.reconcile();
    expect(harness.updates).toBe(before + 1);
  });

  it("is not over for a restart of the operator, nor for an update by a new version of it", async () => {
    const before = await fieldConflict();
    const harness = new Harness(memcached, "changed");
    harness.object = before.object;
    expect(await harness.reconcile()).toMatchObject({ requeueAfterMs: expect.any(Number) });
    expect(harness.updates).toBe(1);
    expect(harness.fieldConflict()?.status).toBe("True");
    expect(harness.synced()).toMatchObject({ status: "False", reason: "FieldConflict" });

    harness.edit();
    await harness.reconcile();
    expect(harness.fieldConflict()?.status).toBe("True");
    vi.advanceTimersByTime(120_000);
    await harness.reconcile();
    expect(harness.fieldConflict()).toMatchObject({ status: "False", reason: "Settled" });
  });

  it.each(["changes the spec", "asks for an update"])(
    "is over when its author %s, until it is found again",
    async (act) => {
      const harness = await fieldConflict();
      act === "changes the spec" ? harness.changeSpec() : harness.request();
      await harness.reconcile();
      expect(harness.fieldConflict()).toMatchObject({ status: "False", reason: "Settled" });
      expect(harness.synced()?.status).toBe("True");
      harness.edit();
      expect(await harness.reconcile()).toBe("done");
      expect(harness.fieldConflict()?.status).toBe("False");
    },
  );

  it("means that the stack is not synced, which is no cause of an update", async () => {
    const harness = await fieldConflict();
    expect(harness.synced()).toMatchObject({ status: "False", reason: "FieldConflict" });
    const before = harness.updates;
    await harness.reconcile();
    expect(harness.updates).toBe(before);
  });

  it("is told of any pace, and over when a repair stays for longer than any before", async () => {
    const harness = await fieldConflict(new Harness(), 15_000);
    const { events, updates } = harness;
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 30_000 });
    vi.advanceTimersByTime(29_000);
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 1_000 });
    expect(harness.fieldConflict()?.status).toBe("True");
    vi.advanceTimersByTime(1_000);
    expect(await harness.reconcile()).toBe("done");
    expect(harness.fieldConflict()).toMatchObject({ status: "False", reason: "Settled" });
    expect(findCondition(statusOf(harness.object).conditions, "Synced")?.status).toBe("True");
    expect([events.length, harness.updates]).toEqual([harness.events.length, updates]);

    const before = harness.updates;
    harness.edit();
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(before + 1);
    expect(harness.fieldConflict()?.status).toBe("False");
  });
});

it("an object whose kind fails to tell what has completed is updated all the same", async () => {
  const completed = () => {
    throw new TypeError("owned.status is undefined");
  };
  const harness = new Harness(counting({ needsReconcile: () => [], completed }));
  await harness.reconcile();
  expect(harness.updates).toBe(1);
});

describe("what ends by itself again and again", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Which of these the harness's Deployment is. */
  const completed = (owned: readonly LiveObject[]) => owned.filter(({ status }) => status === "ended").map(objectId);
  /** An object whose replacement has ended as well. */
  async function failing(others: () => string[] = () => []): Promise<Harness> {
    const harness = new Harness(
      counting({ needsReconcile: (_, owned) => [...completed(owned), ...others()], completed }),
    );
    await harness.reconcile();
    harness.end();
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(2);
    harness.end();
    return harness;
  }

  it("is replaced at once, and then later each time", async () => {
    const harness = await failing();
    for (const seconds of [10, 20, 40, 80, 160, 300, 300]) {
      const before = harness.updates;
      expect(await harness.reconcile()).toEqual({ requeueAfterMs: seconds * 1_000 });
      expect(harness.reconciling()).toMatchObject({ status: "True", reason: "BackOff" });
      vi.advanceTimersByTime(seconds * 1_000 - 1);
      await harness.reconcile();
      expect(harness.updates).toBe(before);
      vi.advanceTimersByTime(1);
      await harness.reconcile();
      expect(harness.updates).toBe(before + 1);
      expect(harness.reconciling()).toBeUndefined();
      harness.end();
    }
  });

  it("is told in a condition and one event, which are over when a user removes it", async () => {
    const harness = await failing();
    await harness.reconcile();
    await harness.reconcile();
    expect(harness.reconciling()?.message).toContain("apps/v1/Deployment/default/cache");
    expect(harness.events.filter((reason) => reason === "BackOff")).toHaveLength(1);

    harness.mend();
    expect(await harness.reconcile()).toBe("done");
    expect(harness.reconciling()).toBeUndefined();
  });

  it("does not keep what is missing besides from being repaired: what waits is left as it is", async () => {
    let missing: string[] = [];
    const harness = await failing(() => missing);
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 10_000 });
    const before = harness.updates;

    missing = ["1 instead of 2"];
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: expect.any(Number) });

    expect(harness.updates).toBe(before + 1);
    const { owned = [] } = harness.program.mock.lastCall?.[1] ?? {};
    expect(completed(owned)).toEqual([]);
    expect(owned).toHaveLength(1);
    missing = [];
    harness.end();
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 10_000 });
    expect(harness.updates).toBe(before + 1);
  });

  it("does not keep a new spec from being applied", async () => {
    const harness = await failing();
    const before = harness.updates;
    harness.changeSpec();
    await harness.reconcile();
    expect(harness.updates).toBe(before + 1);
  });

  it("is replaced at once after a minute in which nothing ended", async () => {
    const harness = await failing();
    vi.advanceTimersByTime(70_000);
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(3);
    harness.end();
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 10_000 });
  });
});

describe("an update that is refused for good", () => {
  const REFUSAL: UpdateFailure = { errorClass: "terminal", reason: "Conflict", message: "belongs to another object" };

  it("is not tried again", async () => {
    const harness = new Harness();
    harness.refusal = REFUSAL;
    expect(await harness.reconcile()).toBe("done");
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(1);
  });

  it("says so again when others write that it is Ready, without another update", async () => {
    const harness = new Harness();
    harness.refusal = REFUSAL;
    await harness.reconcile();
    const written = statusOf(harness.object);
    const forged = { type: "Ready", status: "True", reason: "Succeeded", message: "", observedGeneration: 1 };
    for (const status of [{ ...written, conditions: [{ ...forged, lastTransitionTime: "" }] }, undefined]) {
      harness.object = { ...harness.object, status };
      expect(await harness.reconcile()).toBe("done");
      const { conditions } = statusOf(harness.object);
      expect(findCondition(conditions, "Ready")).toMatchObject({ status: "False", reason: REFUSAL.reason });
      expect(findCondition(conditions, "Stalled")?.status).toBe("True");
    }
    expect(harness.updates).toBe(1);
  });

  it("is tried again when what refused it went while it ran", async () => {
    const harness = new Harness();
    harness.refusal = REFUSAL;
    harness.program.mockImplementationOnce(() => harness.reconciler.reconsider(KEY));
    expect(await harness.reconcile()).toBe("retry");

    harness.refusal = undefined;
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(2);
  });
});

describe("an object that is maintained", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("is reconciled again after its first update: a predecessor may have made what will bring no event", async () => {
    const maintain = vi.fn(async () => undefined);
    const harness = new Harness(kindWith({ maintain }));

    expect(await harness.reconcile()).toEqual({ requeueAfterMs: expect.any(Number) });
    expect(maintain).not.toHaveBeenCalled();
    expect(await harness.reconcile()).toBe("done");

    expect(maintain).toHaveBeenCalledOnce();
    expect(harness.updates).toBe(1);
  });

  it("is looked at again when its maintenance asks for it, though a repair waits for longer", async () => {
    const maintain = vi.fn(async () => ({ requeueAfterMs: 1_000 }));
    const harness = await fieldConflict(new Harness(kindWith({ maintain })));
    harness.edit();
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 1_000 });
  });
});

describe("an update that succeeded", () => {
  it("is recorded though its progress could not be reported, and not repeated", async () => {
    const harness = new Harness();
    await harness.reconcile();
    harness.request();
    harness.refusedWrites = 1;
    expect(await harness.reconcile()).toBe("done");
    expect(statusOf(harness.object).lastHandledReconcile).toBe("now");
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(2);
  });
});

describe("what an update failed for", () => {
  const failure: UpdateFailure = { errorClass: "retryable", reason: "TableMissing", message: "no table" };
  it.each<[string, UpdateFailure, Result]>([
    [
      "is waited for together with others that need it",
      { ...failure, dependency: "table a" },
      { dependency: "table a" },
    ],
    ["is waited for by the object alone where nothing else depends on it", failure, "retry"],
    ["is the operator's own trouble", { ...failure, reason: "NoEngine" }, { dependency: "NoEngine" }],
    ["is what the user has to correct", { ...failure, errorClass: "terminal", dependency: "table a" }, "done"],
  ])("%s", async (_, refusal, result) => {
    const harness = new Harness();
    harness.refusal = refusal;
    expect(await harness.reconcile()).toEqual(result);
  });
});

describe("a record of another stack, as a copy of another object has it", () => {
  it("does not count: what is in that stack is adopted into the object's own", async () => {
    const harness = new Harness();
    await harness.reconcile();
    const { stack, ...status } = statusOf(harness.object);
    harness.object = { ...harness.object, status: { ...status, stack: { ...stack, name: "memcacheds.default.0" } } };
    await harness.reconcile();
    expect(harness.updates).toBe(2);
    expect(statusOf(harness.object).stack?.name).toMatch(/^memcached\.default\.cache-/);
  });
});

describe("an update whose program needs a type that is not served", () => {
  it("fails with a condition that says so", async () => {
    const harness = new Harness(counting({ needsReconcile: () => [] }));
    harness.unserved = true;
    await harness.reconcile();
    expect(findCondition(statusOf(harness.object).conditions, "Ready")).toMatchObject({
      status: "False",
      reason: "UnknownKind",
    });
  });
});

describe("what a program reads besides the spec", () => {
  const ID = "v1/Secret/default/login";
  const referring: AnyKind = {
    ...memcached,
    capabilities: {
      ...memcached.capabilities,
      reads: { login: { apiVersion: "v1", kind: "Secret", name: () => "login" } },
    },
  };
  const secret = (resourceVersion: string) =>
    ({ apiVersion: "v1", kind: "Secret", metadata: { name: "login", uid: "s", resourceVersion } }) as LiveObject;
  const reading = async (version?: string) => {
    const harness = new Harness(referring);
    harness.secret = version === undefined ? undefined : secret(version);
    harness.reference = { object: harness.secret, cacheVersion: version ?? "50" };
    await harness.reconcile();
    return harness;
  };
  const shown = (harness: Harness, version: string | undefined, cacheVersion = version ?? "60") => {
    harness.secret = version === undefined ? undefined : secret(version);
    harness.reference = { object: harness.secret, cacheVersion };
    return harness.reconcile();
  };

  it("is recorded, and another update follows when it comes, changes or goes", async () => {
    const harness = await reading();
    expect(statusOf(harness.object).stack?.references).toEqual([{ id: ID }]);
    await shown(harness, undefined);
    expect(harness.updates).toBe(1);
    await shown(harness, "61");
    expect(statusOf(harness.object).stack?.references).toEqual([{ id: ID, version: "61" }]);
    await shown(harness, "62");
    await shown(harness, "62");
    expect(harness.updates).toBe(3);
    await shown(harness, undefined, "63");
    expect(harness.updates).toBe(4);
  });

  it("does not call for one while the cache is behind what was read", async () => {
    const harness = await reading("61");
    harness.reference = { object: secret("60"), cacheVersion: "60" };
    await harness.reconcile();
    harness.reference = { object: undefined, cacheVersion: "59" };
    await harness.reconcile();
    expect(harness.updates).toBe(1);
  });

  it("calls for one although the last failed for good", async () => {
    const harness = new Harness(referring);
    harness.reference = { object: undefined, cacheVersion: "50" };
    harness.refusal = { errorClass: "terminal", reason: "Invalid", message: "there is no login" };
    await harness.reconcile();
    await harness.reconcile();
    expect(harness.updates).toBe(1);
    harness.refusal = undefined;
    await shown(harness, "61");
    expect(findCondition(statusOf(harness.object).conditions, "Synced")?.status).toBe("True");
  });

  it("are labels and annotations, if it looks at them", async () => {
    const label = (harness: Harness, labels: Record<string, string>) => {
      harness.object = { ...harness.object, metadata: { ...harness.object.metadata, labels } };
      return harness.reconcile();
    };
    const blind = new Harness();
    await blind.reconcile();
    await label(blind, { tier: "gold" });
    expect(blind.updates).toBe(1);

    const looking = new Harness();
    looking.program.mockImplementation(({ metadata }) => void metadata.labels?.tier);
    await looking.reconcile();
    await label(looking, { tier: "gold" });
    await label(looking, { tier: "gold" });
    await label(looking, { tier: "gold", "kindstack.dev/own": "x" });
    expect(looking.updates).toBe(2);
  });
});

describe("a kind whose resources are compared from time to time", () => {
  it("is reconciled when that is due, and tells only what was corrected", async () => {
    const harness = new Harness({ ...memcached, capabilities: { ...memcached.capabilities, refreshEvery: 60 } });
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: expect.any(Number) });
    const clock = vi.spyOn(performance, "now");
    const now = performance.now();
    clock.mockReturnValue(now + 61_000);
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 60_000 });
    expect(harness.updates).toBe(2);
    clock.mockReturnValue(now + 62_000);
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 59_000 });
    expect(harness.updates).toBe(2);
    clock.mockRestore();
  });
});

describe("an object that was restored from a backup", () => {
  it("is updated with a refresh once, though its status says that it is as specified", async () => {
    const harness = new Harness();
    await harness.reconcile();
    harness.changeSpec();
    await harness.reconcile();
    harness.reconciler.noteRestored(KEY);
    expect(await harness.reconcile()).toBe("done");
    expect(await harness.reconcile()).toBe("done");
    expect(harness.causes).toEqual(["Creating", "Updating", "Refreshing"]);
  });

  it("is updated to another spec of a generation whose update was refused for good", async () => {
    const harness = new Harness();
    await harness.reconcile();
    const restored = harness.object;
    harness.refusal = { errorClass: "terminal", reason: "Conflict", message: "belongs to another object" };
    harness.changeSpec();
    await harness.reconcile();
    harness.refusal = undefined;
    harness.object = restored;
    harness.changeSpec();
    expect(await harness.reconcile()).toBe("done"); // as the same generation, it is refused
    expect(harness.updates).toBe(2);

    harness.reconciler.noteRestored(KEY);
    await harness.reconcile();
    expect(harness.updates).toBe(3);
    expect(harness.synced()).toMatchObject({ status: "True", observedGeneration: 2 });
  });
});

describe("a deletion with --cascade=orphan", () => {
  const deleting = (harness: Harness, annotations: Record<string, string>, ...finalizers: string[]) => {
    harness.destroys.push(upResult({ resourceChanges: { delete: 1 } }));
    harness.delete();
    const metadata = { ...harness.object.metadata, annotations, finalizers: [...finalizers, "kindstack.dev/stack"] };
    harness.object = { ...harness.object, metadata };
  };

  it.each([
    ["no record", {}],
    ["the record of an earlier one that was refused", { [ORPHANED_ANNOTATION]: "2025-12-31T00:00:00Z" }],
  ])(
    "with %s keeps what the object made, and is recorded before the garbage collector forgets it",
    async (_, before) => {
      const harness = new Harness();
      await harness.reconcile();
      deleting(harness, before, "orphan");
      harness.reconciler.noteChange(harness.object);
      deleting(harness, before); // the garbage collector was quicker
      expect(await harness.reconcile()).toEqual({ requeueAfterMs: 0 });
      expect(harness.released).toEqual([]);
      expect(harness.object.metadata.annotations).toEqual({ [ORPHANED_ANNOTATION]: "2026-01-01T00:00:00Z" });
      await harness.reconcile();
      expect(harness.released).toEqual([true]);
    },
  );

  it("is recorded once, though others remove the record", async () => {
    const harness = new Harness();
    await harness.reconcile();
    deleting(harness, {}, "orphan");
    harness.reconciler.noteChange(harness.object);
    await harness.reconcile();
    deleting(harness, {});
    await harness.reconcile();
    expect(harness.released).toEqual([true]);
    expect(harness.object.metadata.annotations).toEqual({});
  });

  it("that was refused has no effect on a plain deletion later", async () => {
    const harness = new Harness();
    await harness.reconcile();
    deleting(harness, { [ORPHANED_ANNOTATION]: "2025-12-31T00:00:00Z" });
    await harness.reconcile();
    expect(harness.released).toEqual([false]);
  });
});

describe("what an update of which no one saw the end has made", () => {
  const removeOrphans = vi.fn(async () => {});
  const findDrift = async () => ({ drifted: new Map(), unknown: new Map() });
  beforeEach(() => void removeOrphans.mockClear());

  it("is removed after the next success, except what that one has, and not again", async () => {
    const harness = new Harness(kindWith({ external: { findDrift, removeOrphans } }));
    await harness.reconcile();
    expect(removeOrphans).toHaveBeenCalledExactlyOnceWith(
      { uid: "uid-cache", description: "Memcached.cache.example.com/default/cache" },
      [expect.objectContaining({ manifest: DEPLOYMENT })],
      { release: false },
      expect.objectContaining({ object: expect.objectContaining({ name: "cache", uid: "uid-cache" }) }),
    );
    harness.edit();
    await harness.reconcile();
    expect(removeOrphans).toHaveBeenCalledOnce();
  });

  it("keeps the object from being Ready as long as it cannot be removed", async () => {
    removeOrphans.mockRejectedValueOnce(new Error("the database is away"));
    const harness = new Harness(kindWith({ external: { findDrift, removeOrphans } }));
    const ready = () => findCondition(statusOf(harness.object).conditions, "Ready")?.status;
    expect(await harness.reconcile()).toBe("retry");
    expect(ready()).toBe("False");
    expect(await harness.reconcile()).toBe("done");
    expect(ready()).toBe("True");
    expect(removeOrphans).toHaveBeenCalledTimes(2);
  });
});

describe("a deletion after an update that was cut off", () => {
  const own = () => new Harness(kindWith({ providers: [] }));
  const urn = (type: string) => `urn:pulumi:stack::kindstack::pulumi-nodejs:dynamic/${type}::thing`;
  const refusal = (rest: Partial<UpdateFailure> = {}): UpdateFailure => {
    return { errorClass: "retryable", reason: "ConnectionRefused", message: "away", urn: urn("own:Thing"), ...rest };
  };

  it("waits while that update cannot be finished: no mark leads to what it may have made", async () => {
    const harness = own();
    harness.refusal = refusal();
    harness.delete();
    for (const restart of [() => {}, () => {}, () => harness.reconciler.drop(KEY)]) {
      restart();
      expect(await harness.settle()).toBe("retry");
      expect(harness.synced()).toMatchObject({ status: "False", reason: "DeletionFailed" });
      expect(harness.synced()?.message).toContain("away");
      expect(harness.released).toEqual([]);
    }
    expect(harness.events).toContain("DeletionFailed");

    harness.refusal = undefined;
    harness.destroys.push(upResult({ kind: "destroy" }));
    expect(await harness.settle()).toBe("done");
    expect(harness.updates).toBe(4);
    expect(harness.released).toEqual([false]);
  });

  it("is finished once the state's backend is the operator's again", async () => {
    const harness = own();
    harness.backend.refusal = {
      errorClass: "retryable",
      reason: "BackendForeign",
      message: "another's",
      dependency: "b",
    };
    harness.delete();
    expect(await harness.settle()).toEqual({ dependency: "b" });
    harness.backend.refusal = undefined;
    harness.destroys.push(upResult({ kind: "destroy" }));
    expect(await harness.settle()).toBe("done");
    expect(harness.updates).toBe(1);
  });

  it("is begun again by a process that does not know how that update ended", async () => {
    const harness = own();
    harness.delete();
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: 0 });
    harness.reconciler.drop(KEY);
    harness.destroys.push(upResult({ kind: "destroy" }));
    expect(await harness.settle()).toBe("done");
    expect(harness.updates).toBe(2);
  });

  it("waits while the API server is away", async () => {
    const reads = [{ apiVersion: "apps/v1", kind: "Deployment" }];
    const harness = new Harness(kindWith({ providers: [], liveState: { reads, needsReconcile: () => [] } }));
    harness.away = true;
    harness.delete();
    expect(await harness.reconcile()).toBe("retry");
    expect(harness.released).toEqual([]);
  });

  it.each<[string, () => Harness, Partial<UpdateFailure>]>([
    ["is refused for good", own, { errorClass: "terminal", reason: "Invalid" }],
    ["is refused by a plugin", own, { reason: "UpdateFailed" }],
    ["fails for an object that a mark leads to", own, { urn: urn("kubernetes:Secret") }],
    ["fails, of a kind whose marks lead to all", () => new Harness(), {}],
  ])("does not wait when that update %s", async (_, made, rest) => {
    const harness = made();
    harness.refusal = refusal(rest);
    harness.delete();
    harness.destroys.push(upResult({ kind: "destroy" }));
    await harness.settle();
    expect(harness.released).toEqual([false]);
  });

  it("does not wait where all resources are to stay", async () => {
    const harness = own();
    harness.refusal = refusal();
    harness.delete();
    const annotations = { [DELETION_POLICY_ANNOTATION]: "Orphan" };
    harness.object = { ...harness.object, metadata: { ...harness.object.metadata, annotations } };
    harness.destroys.push(upResult({ kind: "destroy" }));
    await harness.settle();
    expect(harness.released).toEqual([true]);
  });
});

describe("an object whose state is lost", () => {
  /** Of a kind that does not find by marks what it made. */
  async function lost(kind = kindWith({ providers: [] })): Promise<Harness> {
    const harness = new Harness(kind);
    await harness.reconcile();
    expect(harness.synced()?.status).toBe("True");
    harness.lost = true;
    return harness;
  }
  const survey = (harness: Harness, isListed: boolean) => harness.reconciler.noteStackSurvey(harness.object, isListed);
  async function told(): Promise<Harness> {
    const harness = await lost();
    expect(survey(harness, false)).toBe(true);
    expect(await harness.reconcile()).toBe("done");
    expect(harness.stalled()).toMatchObject({ status: "True", reason: "StateMissing" });
    expect(harness.synced()).toMatchObject({ status: "False", reason: "StateMissing" });
    return harness;
  }

  it("is told of when a survey misses its stack, and once", async () => {
    const harness = await told();
    expect(harness.events.at(-1)).toBe("StateMissing");
    expect(survey(harness, false)).toBe(false);
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(1);
    expect(statusOf(harness.object).stack).toBeDefined();
  });

  it("is updated as soon as its stack is there again", async () => {
    const harness = await told();
    harness.lost = false;
    expect(survey(harness, true)).toBe(true);
    expect(await harness.reconcile()).toBe("done");
    expect(harness.synced()?.status).toBe("True");
    expect(survey(harness, true)).toBe(false);
  });

  it("is made once more when a user decides so, and the decision is removed", async () => {
    const harness = await told();
    harness.decide("Recreate");
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(2);
    expect(harness.synced()?.status).toBe("True");
    expect(harness.object.metadata.annotations).toEqual({});
    expect(harness.notes.join()).toContain("were created again");
    harness.lost = true;
    harness.changeSpec();
    await harness.reconcile();
    expect(harness.stalled()?.reason).toBe("StateMissing");
  });

  it("is not adopted where a plugin would make it once more", async () => {
    const harness = await told();
    harness.planned = [{ urn: "urn", type: "keyring:index:Key", name: "key", operation: "create", ofPlugin: true }];
    harness.decide("Adopt");
    expect(await harness.reconcile()).toBe("done");
    expect(harness.stalled()?.message).toContain("a plugin cannot adopt keyring:index:Key key");
    expect(harness.updates).toBe(1);
    expect(await harness.reconcile()).toBe("done");
    expect(harness.previews).toBe(1);
  });

  it("says of a decision for its deletion that it waits for that", async () => {
    const harness = await told();
    harness.decide("Forget");
    expect(await harness.reconcile()).toBe("done");
    expect(harness.stalled()?.message).toContain("is Forget, which takes effect when the object is deleted");
    expect(harness.updates).toBe(1);
    expect(harness.object.metadata.annotations).toEqual({ [STATE_MISSING_ANNOTATION]: "Forget" });
  });

  it("is adopted where its provider finds it", async () => {
    const harness = await told();
    harness.planned = [{ urn: "urn", type: "pulumi-nodejs:dynamic/own:Thing", name: "thing", operation: "create" }];
    harness.decide("Adopt");
    await harness.reconcile();
    expect(harness.updates).toBe(2);
    expect(harness.object.metadata.annotations).toEqual({});
  });

  it("loses a decision that it does not need", async () => {
    const harness = await lost();
    harness.lost = false;
    harness.decide("Recreate");
    await harness.reconcile();
    expect(harness.object.metadata.annotations).toEqual({});
    expect(harness.events).not.toContain("StateMissing");
  });

  it("takes over what its marks lead to, and says so", async () => {
    const harness = await lost(memcached);
    survey(harness, false);
    await harness.reconcile();
    expect(harness.synced()?.status).toBe("True");
    expect(harness.events).toContain("StateMissing");
    expect(harness.updates).toBe(2);
  });

  it("is not deleted before a user decides", async () => {
    const harness = await lost();
    harness.delete();
    for (const decision of [undefined, "Recreate"]) {
      harness.decide(decision);
      expect(await harness.reconcile()).toBe("retry");
      expect(harness.stalled()).toMatchObject({ status: "True", reason: "StateMissing" });
      expect(harness.reconciling()?.reason).toBe("Deleting");
    }
    expect(harness.stalled()?.message).toContain("is Recreate, which has no effect on a deletion");
    expect([harness.released, harness.forgotten, harness.updates]).toEqual([[], [], 1]);
    harness.decide("Forget");
    harness.remove();
    harness.destroys.push(upResult({ kind: "destroy" }, { found: false }));
    expect(await harness.reconcile()).toBe("done");
    expect(harness.forgotten).toHaveLength(1);
  });

  it.each([
    ["when a user decides so", kindWith({ providers: [] }), "Adopt"],
    ["where its marks lead to all", memcached, undefined],
  ])("is taken over before it is deleted %s", async (_, kind, decision) => {
    const harness = await lost(kind);
    harness.delete();
    harness.decide(decision);
    harness.destroys.push(upResult({ kind: "destroy" }));
    expect(await harness.settle()).toBe("done");
    expect([harness.updates, harness.released]).toEqual([2, [false]]);
  });

  it("is deleted by its marks alone where it cannot be taken over", async () => {
    const harness = await lost(memcached);
    harness.delete();
    harness.refusal = { errorClass: "retryable", reason: "QuotaExceeded", message: "exceeded quota" };
    harness.remove();
    harness.destroys.push(upResult({ kind: "destroy" }, { found: false }));
    expect(await harness.settle()).toBe("done");
    expect(harness.released).toEqual([false]);
    expect(harness.forgotten).toHaveLength(1);
  });

  it("is released without its state", async () => {
    const harness = await lost();
    harness.delete();
    harness.remove();
    const annotations = { [DELETION_POLICY_ANNOTATION]: "Orphan" };
    harness.object = { ...harness.object, metadata: { ...harness.object.metadata, annotations } };
    harness.destroys.push(upResult({ kind: "destroy" }, { found: false }));
    expect(await harness.reconcile()).toBe("done");
    expect(harness.released).toEqual([true]);
  });

  it.each<Mode>(["Observe", "Propose"])("is told of in the mode %s", async (mode) => {
    const harness = await lost();
    harness.mode = mode;
    await harness.reconcile();
    survey(harness, false);
    await harness.reconcile();
    expect(harness.stalled()?.reason).toBe("StateMissing");
    expect(harness.plan).toBeUndefined();
  });
});

describe("a kind whose program depends on what is alive", () => {
  it("gets another look after an update of which no one saw the end: what that made may be one too many", async () => {
    let surplus: string[] = ["2 instead of 1"];
    const harness = new Harness(counting({ needsReconcile: () => surplus }));
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: expect.any(Number) });
    surplus = [];
    await harness.reconcile();
    expect(await harness.reconcile()).toBe("done");
  });

  /** One that the cache does not show any more, or not yet, what it made. */
  async function behind(shownOwned: LiveObject[]): Promise<Harness> {
    const needsReconcile = (_: unknown, owned: readonly LiveObject[]) =>
      owned.length === 1 ? [] : ["none instead of 1"];
    const harness = new Harness(counting({ needsReconcile }));
    await harness.reconcile();
    await harness.reconcile();
    harness.shownOwned = shownOwned;
    return harness;
  }

  it("is not updated for what is short only in a cache that is behind", async () => {
    const harness = await behind([]);
    const before = harness.updates;
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(before);
    harness.shownOwned = undefined;
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(before);
  });

  it("goes by what the API server has, whatever a cache shows", async () => {
    const harness = await behind([]);
    harness.changeSpec();
    await harness.reconcile();
    const found = expect.objectContaining({ kind: "Deployment" });
    expect(harness.program).toHaveBeenLastCalledWith(expect.anything(), expect.objectContaining({ owned: [found] }));
  });

  it("gets none after one whose end was seen", async () => {
    const harness = new Harness(counting({ needsReconcile: () => [] }));
    await harness.reconcile();
    harness.edit();
    expect(await harness.reconcile()).toBe("done");
  });
});

describe("a clock that is set back", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const setBack = () => vi.setSystemTime(Date.now() - 24 * 3_600_000);

  it("does not put off repairs", async () => {
    const harness = new Harness();
    await harness.reconcile();
    harness.edit();
    await harness.reconcile();
    const before = harness.updates;

    setBack();
    harness.edit();
    expect(await harness.reconcile()).toBe("done");

    expect(harness.updates).toBe(before + 1);
  });

  it("does not keep an object from being maintained", async () => {
    const maintain = vi.fn(async (_object: unknown, { apply }: Maintenance) => {
      await apply(DEPLOYMENT, "quota");
      return undefined;
    });
    const harness = new Harness(kindWith({ maintain }));
    await harness.reconcile();
    await harness.reconcile();
    expect(maintain).toHaveBeenCalledOnce();

    setBack();
    vi.advanceTimersByTime(1_000);
    await harness.reconcile();

    expect(maintain).toHaveBeenCalledTimes(2);
  });
});

describe("a cache that is behind", () => {
  const successor = (harness: Harness, changes: object): LiveObject => ({
    ...harness.object,
    metadata: { ...harness.object.metadata, resourceVersion: "200", ...changes },
  });

  it.each([
    ["has a newer spec", { generation: 2 }],
    ["was deleted and made again under its name", { uid: "uid-successor" }],
    ["is being deleted", { deletionTimestamp: "2026-01-01T00:00:00Z" }],
  ])("leads to no update of an object that %s, until it has caught up", async (_, changes) => {
    const harness = new Harness();
    harness.shown = harness.object;
    harness.object = successor(harness, changes);
    expect(await harness.reconcile()).toBe("retry");
    expect(harness.updates).toBe(0);
    expect(harness.object.status).toBeUndefined();
  });

  it("is asked again, and then leads to one", async () => {
    const harness = new Harness();
    harness.shown = harness.object;
    harness.object = successor(harness, { generation: 2 });
    await harness.reconcile();
    harness.shown = undefined;
    await harness.reconcile();
    expect(harness.updates).toBe(1);
  });
});

describe("a cache that is known to be up to date", () => {
  it("saves an update and a destroy the request for the object", async () => {
    const harness = new Harness();
    await harness.reconcile();
    const reads = async (cacheIsFresh: boolean, act: () => void) => {
      harness.cacheIsFresh = cacheIsFresh;
      harness.reads = 0;
      act();
      await harness.reconcile();
      return harness.reads;
    };
    expect(await reads(false, () => harness.changeSpec(2))).toBe(1);
    expect(await reads(true, () => harness.changeSpec(3))).toBe(0);
    expect(harness.updates).toBe(3);
    harness.destroys.push(upResult({ kind: "destroy" }));
    expect(await reads(true, () => harness.delete())).toBe(0);
    expect(harness.released).toEqual([false]);
  });

  it("leads to no second destroy of an object that it still shows", async () => {
    const harness = new Harness();
    await harness.reconcile();
    harness.cacheIsFresh = true;
    harness.delete();
    harness.destroys.push(upResult({ kind: "destroy" }));
    await harness.reconcile();

    for (const _ of [1, 2]) expect(await harness.reconcile()).toBe("done");

    expect(harness.released).toHaveLength(1);
    expect(harness.events.filter((reason) => reason === "Deleted")).toHaveLength(1);
  });

  it("leads to the destroy of a successor that is deleted as well", async () => {
    const harness = new Harness();
    harness.cacheIsFresh = true;
    harness.delete();
    harness.destroys.push(upResult({ kind: "destroy" }), upResult({ kind: "destroy" }));
    await harness.settle();
    harness.object = { ...harness.object, metadata: { ...harness.object.metadata, uid: "uid-successor" } };
    await harness.settle();
    expect(harness.released).toHaveLength(2);
  });
});

describe("an object that is only observed", () => {
  const deployment = (size: number) => ({ ...DEPLOYMENT, spec: { replicas: size } });
  const change: PlannedChange = {
    ...({
      urn: "urn:pulumi:s::kindstack::t::deployment/cache",
      type: "t:Deployment",
      name: "deployment/cache",
    } as const),
    operation: "update",
    old: { inputs: { manifest: deployment(1) }, outputs: { manifest: deployment(1) } },
    inputs: { manifest: deployment(3) },
  };
  const synced = (harness: Harness) => findCondition(statusOf(harness.object).conditions, "Synced");
  const ready = (harness: Harness) => findCondition(statusOf(harness.object).conditions, "Ready");

  function neverApplied(): Harness {
    const harness = new Harness();
    harness.mode = "Observe";
    const { finalizers: __, ...metadata } = harness.object.metadata;
    harness.object = { ...harness.object, metadata };
    harness.deployment = undefined;
    const { old: _, inputs, ...created } = change;
    const owner = { uid: "uid-cache", description: "Memcached default/cache" };
    harness.planned = [{ ...created, operation: "create", inputs: { ...inputs, __provider: OBJECT_STUB, owner } }];
    return harness;
  }

  it("gets a status and nothing else when it was never applied", async () => {
    const harness = neverApplied();
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(0);
    expect(harness.object.metadata.finalizers).toBeUndefined();
    const message = "only observed; an update would: create Deployment deployment/cache";
    expect(synced(harness)).toMatchObject({ status: "False", reason: "Observed", message, observedGeneration: 1 });
    expect(ready(harness)).toMatchObject({ status: "False", reason: "Observed" });
    expect(harness.reconciling()).toBeUndefined();
    expect(statusOf(harness.object)).toMatchObject({ mode: "Observe", observedGeneration: 1 });
    expect(statusOf(harness.object).stack).toBeUndefined();
    expect(harness.events).toEqual(["Observed"]);
  });

  it("is previewed once, and again when it has changed", async () => {
    const harness = neverApplied();
    await harness.reconcile();
    await harness.reconcile();
    expect(harness.previews).toBe(1);
    harness.changeSpec();
    await harness.reconcile();
    expect(harness.previews).toBe(2);
  });

  it("keeps what runs Ready, says what would change, and is applied again in full", async () => {
    const harness = new Harness();
    await harness.reconcile();
    harness.mode = "Observe";
    harness.planned = [change];
    harness.changeSpec();
    await harness.reconcile();
    expect(synced(harness)?.message).toBe(
      "only observed; an update would: update Deployment deployment/cache: spec.replicas 1 → 3",
    );
    expect(ready(harness)).toMatchObject({
      status: "True",
      message: "what was applied last is ready",
      observedGeneration: 2,
    });
    expect([harness.updates, harness.loosened]).toEqual([1, 0]);

    harness.mode = "Apply";
    await harness.reconcile();
    expect([harness.updates, harness.loosened]).toEqual([2, 1]);
    expect(harness.events).toContain("ModeLoosened");
    expect(synced(harness)?.status).toBe("True");
    expect(statusOf(harness.object).mode).toBeUndefined();
  });

  it("is told of a less strict mode once, however often the update of it is interrupted", async () => {
    const harness = new Harness();
    await harness.reconcile();
    harness.mode = "Observe";
    harness.planned = [change];
    harness.changeSpec();
    await harness.reconcile();

    harness.mode = "Apply";
    harness.interrupted = true;
    expect([await harness.reconcile(), await harness.reconcile()]).toEqual(["retry", "retry"]);
    harness.interrupted = false;
    await harness.reconcile();
    expect(harness.events.filter((reason) => reason === "ModeLoosened")).toHaveLength(1);
    expect(harness.loosened).toBe(1);
  });

  it("leaves all that it made when it is deleted", async () => {
    const harness = new Harness();
    await harness.reconcile();
    harness.mode = "Observe";
    harness.destroys.push(upResult({ kind: "destroy" }));
    harness.delete();
    await harness.reconcile();
    expect(harness.released).toEqual([true]);
  });
});

describe("an object whose changes wait for an approval", () => {
  const deployment = (replicas: number) => ({ ...DEPLOYMENT, spec: { replicas } });
  const name = "deployment/cache";
  const change = (operation: PlannedChange["operation"], after = 3): PlannedChange => ({
    urn: `urn:pulumi:memcached.default.cache::kindstack::pulumi-nodejs:dynamic/kubernetes:Deployment::${name}`,
    type: "pulumi-nodejs:dynamic/kubernetes:Deployment",
    name,
    operation,
    old: { inputs: { manifest: deployment(1) }, outputs: { manifest: deployment(1) } },
    ...(operation !== "delete" && { inputs: { manifest: deployment(after) } }),
  });
  const synced = (harness: Harness) => findCondition(statusOf(harness.object).conditions, "Synced");

  /** One that was applied, and whose spec has changed since. */
  async function changed(mode: Mode = "Propose", planned = [change("update")]): Promise<Harness> {
    const harness = new Harness();
    await harness.reconcile();
    harness.mode = mode;
    harness.planned = planned;
    harness.changeSpec();
    await harness.reconcile();
    return harness;
  }

  /** An approved update of two resources has failed. */
  async function failedOnTheWay(): Promise<Harness> {
    const harness = await changed("Propose", [
      change("update"),
      { ...change("update"), urn: "second", name: "second" },
    ]);
    decide(harness, "Approve");
    harness.refusal = { errorClass: "retryable", reason: "Unreachable", message: "away" };
    await harness.reconcile();
    return harness;
  }

  function decide(
    harness: Harness,
    decision: PlanDecision["decision"],
    digest = harness.plan?.spec.digest ?? "",
  ): void {
    const at = "2026-01-01T00:00:00Z";
    const expiresAt = Date.now() + 60_000;
    harness.decisions.set(digest, { decision, approver: "jane", reason: "CHG-1", at, digest, expiresAt });
  }

  it("has a plan, says so, and nothing is done", async () => {
    const harness = await changed();
    expect(harness.updates).toBe(1);
    expect(harness.plan).toMatchObject({
      status: { state: "Pending" },
      spec: {
        object: { kind: "Memcached", name: "cache", generation: 2 },
        cause: { reason: "SpecChanged" },
        actions: { create: 0, update: 1, replace: 0, delete: 0 },
        steps: [{ action: "update", fields: [{ path: "spec.replicas", from: "1", to: "3" }] }],
      },
    });
    expect(synced(harness)).toMatchObject({ status: "False", reason: "WaitsForApproval", observedGeneration: 2 });
    expect(synced(harness)?.message).toMatch(
      /^approve it with: kindstack approve memcacheds.cache.example.com cache -n default --digest sha256:\w+; update Deployment/,
    );
    expect(harness.reconciling()).toBeUndefined();
    expect(findCondition(statusOf(harness.object).conditions, "Ready")?.status).toBe("True");
    expect(harness.events.at(-1)).toBe("WaitsForApproval");
  });

  it("is previewed once while nothing changes, and writes nothing", async () => {
    const harness = await changed();
    const { previews, object } = harness;
    await harness.reconcile();
    expect(harness.previews).toBe(previews);
    expect(harness.object).toBe(object);
  });

  it("is applied once its digest is approved, and not its group's, held to the preview", async () => {
    const harness = await changed();
    decide(harness, "Approve", harness.plan?.spec.group);
    await harness.reconcile();
    expect(harness.updates).toBe(1);
    decide(harness, "Approve", harness.plan?.spec.digest);
    await harness.reconcile();
    expect(harness.updates).toBe(2);
    expect(harness.held).toEqual([undefined, PLAN]);
    expect(harness.plan).toBeUndefined();
    expect(synced(harness)?.status).toBe("True");
    expect(statusOf(harness.object).stack?.approval).toMatchObject({ approver: "jane", reason: "CHG-1" });
    expect(harness.events).toContain("Approved");
  });

  it("is applied for the cause of its plan, whatever else has changed meanwhile", async () => {
    const harness = await changed();
    harness.edit();
    await harness.reconcile();
    expect(harness.plan?.spec.cause.reason).toBe("SpecChanged");
    decide(harness, "Approve");
    await harness.reconcile();
    expect(harness.causes).toEqual(["Creating", "Updating"]);
  });

  it("is not applied when it would do something else by then", async () => {
    const harness = await changed();
    const { digest } = harness.plan?.spec ?? {};
    decide(harness, "Approve");
    harness.planned = [change("update", 4)];
    await harness.reconcile();
    expect(harness.updates).toBe(1);
    expect(harness.plan?.spec.digest).not.toBe(digest);
    expect(harness.plan?.status.state).toBe("Pending");
  });

  it("tells of a rejection until that expires", async () => {
    const harness = await changed();
    decide(harness, "Reject");
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: expect.any(Number) });
    expect(synced(harness)?.message).toMatch("rejected by jane: CHG-1 (until ");
    expect(harness.plan?.status).toMatchObject({ state: "Rejected", message: "CHG-1", decidedBy: "jane" });
    expect(harness.events.at(-1)).toBe("Rejected");
    harness.decisions.clear();
    await harness.reconcile();
    expect(harness.plan?.status.state).toBe("Pending");
    expect(harness.updates).toBe(1);
  });

  describe("where the author of a change may not approve it", () => {
    /** As the API server records it. */
    async function changedBy(authors: string | undefined): Promise<Harness> {
      const harness = new Harness();
      harness.plans.authorMayNotApprove = true;
      await harness.reconcile();
      harness.mode = "Propose";
      harness.planned = [change("update")];
      harness.changeSpec();
      const annotations = authors === undefined ? {} : { [AUTHOR_ANNOTATION]: authors };
      harness.object = { ...harness.object, metadata: { ...harness.object.metadata, annotations } };
      await harness.reconcile();
      return harness;
    }

    it.each(["jane", "olga\njane"])("is not applied by an approval of %j, and tells why once", async (authors) => {
      const harness = await changedBy(authors);
      const by = authors.replace("\n", ", ");
      expect(harness.plan?.spec.cause).toMatchObject({ reason: "SpecChanged", by });
      decide(harness, "Approve");
      await harness.reconcile();
      await harness.reconcile();
      expect(harness.updates).toBe(1);
      const reason = `the approval by jane has no effect: the change is by ${by}, and needs the approval of another user`;
      expect(synced(harness)).toMatchObject({ reason: "WaitsForApproval", message: expect.stringContaining(reason) });
      expect(harness.plan?.status).toEqual({ state: "Pending", message: reason });
      expect(harness.events.filter((event) => event === "ApprovalIgnored")).toHaveLength(1);
    });

    it("is applied by another user's approval, and rejected by the author", async () => {
      const harness = await changedBy("olga");
      decide(harness, "Approve");
      await harness.reconcile();
      expect(harness.updates).toBe(2);
      const own = await changedBy("jane");
      decide(own, "Reject");
      await own.reconcile();
      expect(own.plan?.status.state).toBe("Rejected");
    });

    it.each([undefined, ""])("waits where nothing has recorded who that is: %j", async (authors) => {
      const harness = await changedBy(authors);
      expect(harness.plan?.spec.cause.by).toBe("[unknown]");
      decide(harness, "Approve");
      await harness.reconcile();
      expect(harness.updates).toBe(1);
      expect(synced(harness)?.message).toContain("it is not recorded who made the change");
    });

    it("still has its author when others delete its plan while the program changes", async () => {
      const harness = await changedBy("jane");
      harness.plan = undefined;
      await harness.reconcile();
      expect(harness.plan).toMatchObject({ spec: { cause: { by: "jane" } } });
      decide(harness, "Approve");
      await harness.reconcile();
      expect(harness.updates).toBe(1);
    });

    it("has no author when the world changes after it was applied", async () => {
      const harness = await changedBy("jane");
      harness.mode = "Apply";
      await harness.reconcile();
      expect(synced(harness)?.status).toBe("True");
      harness.mode = "Propose";
      harness.edit();
      await harness.reconcile();
      expect(harness.plan?.spec.cause.reason).toBe("Drifted");
      expect(harness.plan?.spec.cause.by).toBeUndefined();
      decide(harness, "Approve");
      const { updates } = harness;
      await harness.reconcile();
      expect(harness.updates).toBe(updates + 1);
    });
  });

  it("makes its plan again when others delete it", async () => {
    const harness = await changed();
    const digest = harness.plan?.spec.digest;
    harness.plan = undefined;
    await harness.reconcile();
    expect(harness).toMatchObject({ plan: { spec: { digest } } });
  });

  it("is recorded without a plan when there is nothing to do", async () => {
    const harness = await changed("Propose", [change("same")]);
    expect(harness.plan).toBeUndefined();
    expect(harness.held).toEqual([undefined, PLAN]);
    expect(synced(harness)?.status).toBe("True");
  });

  it("loses its plan when what it was for is taken back, and when the mode is loosened", async () => {
    const harness = await changed();
    harness.planned = [change("same")];
    harness.changeSpec(3);
    await harness.reconcile();
    expect(harness.plan).toBeUndefined();
    const loosened = await changed();
    loosened.mode = "Apply";
    await loosened.reconcile();
    expect(loosened.plan).toBeUndefined();
    expect(loosened.held).toEqual([undefined, undefined]);
  });

  it("needs no other approval for what remains of an update that failed on the way", async () => {
    const harness = await failedOnTheWay();
    expect(harness.plan?.status.state).toBe("Applying");
    harness.refusal = undefined;
    harness.planned = [change("update")];
    await harness.reconcile();
    expect(synced(harness)?.status).toBe("True");
    expect(harness.plan).toBeUndefined();
  });

  it("needs none for what it has made before a crash, though no state has it", async () => {
    const harness = new Harness();
    harness.mode = "Propose";
    const { old: _, ...created } = change("create");
    const owner = { uid: "uid-cache", description: "Memcached default/cache" };
    const inputs = { manifest: deployment(1), owner, __provider: OBJECT_STUB };
    const { deployment: made } = harness;
    harness.deployment = undefined;
    harness.planned = [{ ...created, inputs }];
    await harness.reconcile();
    decide(harness, "Approve");
    harness.interrupted = true;
    await harness.reconcile();
    expect(harness.plan?.status.state).toBe("Applying");

    harness.interrupted = false;
    const labels = { "kindstack.dev/owner-uid": owner.uid };
    harness.deployment = made && { ...made, metadata: { ...made.metadata, labels } };
    await harness.reconcile();
    expect(synced(harness)?.status).toBe("True");
    expect(statusOf(harness.object).stack?.approval?.approver).toBe("jane");
  });

  it.each([
    ["no other approval for what it has deleted before a crash, though the state still has it", true],
    ["another one for what others have changed since the crash", false],
  ])("needs %s", async (_, isGone) => {
    const harness = await changed("Propose", [change("same")]);
    harness.planned = [change("delete")];
    harness.delete();
    await harness.reconcile();
    decide(harness, "Approve");
    harness.destroys.push(upResult({ kind: "destroy" }, { interrupted: true }));
    await harness.reconcile();
    expect(harness.plan?.status.state).toBe("Applying");

    if (isGone) harness.remove();
    else harness.edit();
    harness.destroys.push(upResult({ kind: "destroy" }));
    await harness.reconcile();
    expect(harness.released).toHaveLength(isGone ? 2 : 1);
    expect(harness.plan?.status.state).toBe(isGone ? undefined : "Pending");
  });

  it("needs one for what is not among the approved steps", async () => {
    const harness = await failedOnTheWay();
    harness.refusal = undefined;
    const { held } = harness;
    const count = held.length;
    harness.planned = [change("update", 4)];
    await harness.reconcile();
    expect(held).toHaveLength(count);
    expect(harness.plan?.status.state).toBe("Pending");
  });

  it("stays when it is deleted, until that is approved", async () => {
    const harness = await changed("Propose", [change("same")]);
    harness.planned = [change("delete")];
    harness.delete();
    await harness.reconcile();
    expect(harness.plan?.spec).toMatchObject({ cause: { reason: "Deleted" }, actions: { delete: 1 } });
    expect(synced(harness)).toMatchObject({ status: "False", reason: "WaitsForApproval" });
    harness.destroys.push(upResult({ kind: "destroy" }));
    decide(harness, "Approve");
    await harness.reconcile();
    expect(harness.released).toEqual([false]);
    expect(harness.held.at(-1)).toBe(PLAN);
    expect(harness.plan).toBeUndefined();
  });

  it("is terminal, and nothing is applied, where the API server serves no plans", async () => {
    const harness = new Harness(memcached, "digest", false);
    harness.mode = "Propose";
    harness.planned = [change("create")];
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(0);
    expect(synced(harness)?.message).toMatch("the mode Propose needs the CRDs of plans and approvals");
    expect(findCondition(statusOf(harness.object).conditions, "Stalled")?.status).toBe("True");
  });

  it("is not applied where an engine does not bind itself", async () => {
    const harness = new Harness();
    harness.mode = "Propose";
    harness.binds = false;
    harness.planned = [change("create")];
    await harness.reconcile();
    expect(harness.updates).toBe(0);
    expect(synced(harness)?.reason).toBe("PlansUnsupported");
  });

  describe("if they destroy something", () => {
    it("is updated at once, held to the preview, by what destroys nothing", async () => {
      const harness = await changed("ProposeDestructive");
      expect(harness.updates).toBe(2);
      expect(harness.held).toEqual([undefined, PLAN]);
      expect(harness.plan).toBeUndefined();
    });

    it.each(["delete", "replace"] as const)("waits before a %s", async (operation) => {
      const harness = await changed("ProposeDestructive", [change(operation)]);
      expect(harness.updates).toBe(1);
      expect(harness.plan?.status.state).toBe("Pending");
    });
  });
});
