import pino from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { KubernetesClient, LiveObject, Manifest } from "../../providers/kubernetes/client";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import { ownedFieldsDigest } from "../../providers/kubernetes/ownership";
import type { UpdateFailure, UpdateResult } from "../../src/automation/engine";
import { Claims } from "../../src/controller/claims";
import type { EventRecorder } from "../../src/controller/event-recorder";
import { MAX_REPAIRS_PER_MINUTE } from "../../src/controller/field-conflict";
import { Reconciler } from "../../src/controller/reconcile";
import { findCondition } from "../../stacks/contract/condition";
import { type AnyKind, statusOf, type Tending } from "../../stacks/contract/kind";
import { objectId } from "../../stacks/contract/object";
import { memcached } from "../../stacks/memcached/kind";
import { applied } from "../objects";

/*
 * A reconciler between an API server and an engine that are played: what takes minutes in the world, a fight with
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
const OURS = { "f:spec": { "f:replicas": {} } };

/** The cluster, with one Memcached and its Deployment, and everything that happens to them. */
class World {
  #version = 100;
  readonly events: string[] = [];
  updates = 0;
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
  shownOwned: LiveObject[] | undefined;
  /** Why updates fail. */
  refusal: UpdateFailure | undefined;
  readonly program = vi.fn<AnyKind["program"]>();
  deployment: LiveObject | undefined = this.#deployment(true);
  readonly reconciler: Reconciler;

  constructor(kind: AnyKind = memcached) {
    this.reconciler = new Reconciler({
      kind: { ...kind, program: this.program },
      type: TYPE,
      program: "digest",
      client: {
        apply: async (_type: unknown, { kind }: { kind: string }) => ({
          object: kind === DEPLOYMENT.kind ? this.deployment : this.object,
          created: false,
        }),
        replaceStatus: async (_type: unknown, _object: unknown, status: object) => {
          const resourceVersion = String(++this.#version);
          this.object = { ...this.object, status, metadata: { ...this.object.metadata, resourceVersion } };
          return this.object;
        },
        resourceType: async () => ({ ...TYPE, kind: DEPLOYMENT.kind }),
        list: async () => ({ items: this.#owned }),
        get: async ({ kind }: { kind: string }) => (kind === TYPE.kind ? this.object : this.deployment),
      } as unknown as KubernetesClient,
      engine: {
        up: async (_stack: string, program: () => void) => {
          program();
          return this.refusal === undefined ? this.#up() : this.#refused(this.refusal);
        },
        destroy: () => Promise.reject(new Error("nothing is to be destroyed")),
        recorded: () => Promise.reject(new Error("nothing is to be destroyed")),
        forget: () => Promise.reject(new Error("nothing is to be destroyed")),
      },
      claims: new Claims(
        () => {},
        () => true,
      ),
      recorder: { event: (...[, , reason]: string[]) => this.events.push(reason ?? "") } as unknown as EventRecorder,
      logger: pino({ level: "silent" }),
      cached: () => this.shown ?? this.object,
      queueKey: (key) => key,
      owned: () => this.shownOwned ?? this.#owned,
      observed: () => [],
      view: () => ({ object: this.deployment, cacheVersion: String(this.#version) }),
      describeOwner: () => undefined,
      observe: () => {},
    });
  }

  get #owned(): LiveObject[] {
    return this.deployment === undefined ? [] : [this.deployment];
  }

  reconcile() {
    return this.reconciler.reconcile(KEY, new AbortController().signal);
  }

  /** Somebody sets a field that is Kindstack's. */
  edit(): void {
    this.deployment = this.#deployment(false);
  }

  /** Somebody deletes what Kindstack made. */
  remove(): void {
    this.deployment = undefined;
    this.#version++;
  }

  /** What Kindstack made comes to its end by itself. */
  end(): void {
    if (this.deployment !== undefined) this.deployment = { ...this.deployment, status: "ended" };
  }

  /** What has ended is there again, by somebody else's doing. */
  mend(): void {
    if (this.deployment !== undefined) this.deployment = { ...this.deployment, status: "running" };
  }

  reconciling() {
    return findCondition(statusOf(this.object).conditions, "Reconciling");
  }

  contested() {
    return findCondition(statusOf(this.object).conditions, "Contested");
  }

  #up(): UpdateResult {
    this.updates++;
    const deployment = this.#deployment(true);
    this.deployment = deployment;
    const outputs = {
      __provider: OBJECT_STUB,
      manifest: DEPLOYMENT,
      resourceVersion: deployment.metadata.resourceVersion,
      fields: ownedFieldsDigest(deployment),
    };
    const resource = { urn: "urn", type: "t", name: "deployment/cache", operation: "update", outputs } as const;
    return {
      operation: "up",
      outcome: "succeeded",
      changes: { update: 1 },
      resources: [resource],
      deleted: [],
      failures: [],
      durationMs: 1,
    };
  }

  #refused(failure: UpdateFailure): UpdateResult {
    this.updates++;
    const nothing = { changes: {}, resources: [], deleted: [], durationMs: 1 };
    return { operation: "up", outcome: "failed", failures: [failure], restDone: true, ...nothing };
  }

  #deployment(whole: boolean): LiveObject {
    const managedFields = whole
      ? [applied("kindstack", OURS)]
      : [applied("kindstack", {}), { manager: "someone", operation: "Update" as const, fieldsV1: OURS }];
    const resourceVersion = String(++this.#version);
    return {
      ...DEPLOYMENT,
      metadata: { name: "cache", namespace: "default", uid: "d", resourceVersion, managedFields },
    };
  }
}

describe("an update that has to wait until something is gone", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const object = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "cache", namespace: "default", uid: "d" },
  };
  const refusal = { errorClass: "pending", reason: "Terminating", message: "is being deleted", object } as const;
  async function waiting(refusal: UpdateFailure): Promise<World> {
    const world = new World();
    world.refusal = refusal;
    expect(await world.reconcile()).toEqual({ afterMs: expect.any(Number) });
    return world;
  }
  const ready = (world: World) => findCondition(statusOf(world.object).conditions, "Ready");

  it("says so without an event, and is not repeated while that is there", async () => {
    const world = await waiting(refusal);
    expect(ready(world)).toMatchObject({ status: "False", reason: "Terminating", message: "is being deleted" });
    expect(world.reconciling()).toMatchObject({ status: "True", reason: "Waiting" });
    expect(world.events).toEqual([]);
    for (let minute = 0; minute < 10; minute++) {
      vi.advanceTimersByTime(60_000);
      await world.reconcile();
    }
    expect(world.updates).toBe(1);
    expect(ready(world)?.message).toBe("Deployment cache is being deleted");
  });

  it("is repeated as soon as a cache shows that it is gone", async () => {
    const world = await waiting(refusal);
    world.remove();
    world.refusal = undefined;
    expect(await world.reconcile()).toBe("done");
    expect(ready(world)?.status).toBe("True");
    expect(world.reconciling()).toBeUndefined();
  });

  it("is repeated at once for another spec, or when the object was asked to be updated", async () => {
    const world = await waiting(refusal);
    const { metadata } = world.object;
    world.object = { ...world.object, metadata: { ...metadata, generation: 2, resourceVersion: "999" } };
    await world.reconcile();
    expect(world.updates).toBe(2);
    const annotations = { "kindstack.dev/reconcile": "now" };
    world.object = { ...world.object, metadata: { ...world.object.metadata, annotations, resourceVersion: "9999" } };
    await world.reconcile();
    expect(world.updates).toBe(3);
  });

  it("is repeated after a modest time where nothing shows what it waits for", async () => {
    const { object: _, ...unnamed } = refusal;
    const world = await waiting(unnamed);
    for (const updates of [2, 3, 4]) {
      vi.advanceTimersByTime(5_000);
      expect(await world.reconcile()).toEqual({ afterMs: 5_000 });
      expect(world.updates).toBe(updates);
    }
  });
});

/** A kind whose program depends on what is alive. */
const counting: AnyKind = {
  ...memcached,
  conditions: () => [],
  counts: [{ apiVersion: "apps/v1", kind: "Deployment" }],
};

describe("a fight", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** An object that somebody edited right after each repair, one time too often. */
  async function contested(): Promise<World> {
    const world = new World();
    await world.reconcile();
    for (let repair = 0; repair <= MAX_REPAIRS_PER_MINUTE; repair++) {
      expect(world.contested()).toBeUndefined();
      world.edit();
      await world.reconcile();
    }
    return world;
  }

  it("is told in a condition and an event, with the field and its other manager", async () => {
    const world = await contested();
    expect(world.contested()).toMatchObject({
      status: "True",
      reason: "FieldContested",
      message: expect.stringContaining("Deployment cache: spec.replicas is also set by someone"),
    });
    expect(world.events.filter((reason) => reason === "Contested")).toHaveLength(1);
  });

  it("is also one when what was made is deleted again and again", async () => {
    const world = new World();
    await world.reconcile();
    for (let repair = 0; repair <= MAX_REPAIRS_PER_MINUTE; repair++) {
      world.remove();
      await world.reconcile();
    }
    expect(world.contested()).toMatchObject({
      status: "True",
      message: expect.stringContaining("apps/v1/Deployment/default/cache is deleted by somebody"),
    });
  });

  it("is not answered until the time has come, and each time later", async () => {
    const world = await contested();
    for (const seconds of [10, 20, 40]) {
      world.edit();
      const before = world.updates;
      expect(await world.reconcile()).toEqual({ afterMs: seconds * 1_000 });
      vi.advanceTimersByTime(seconds * 1_000 - 1);
      await world.reconcile();
      expect(world.updates).toBe(before);
      vi.advanceTimersByTime(1);
      await world.reconcile();
      expect(world.updates).toBe(before + 1);
    }
  });

  it("does not keep a new spec from being brought about", async () => {
    const world = await contested();
    world.edit();
    const before = world.updates;
    world.object = { ...world.object, metadata: { ...world.object.metadata, generation: 2, resourceVersion: "999" } };
    await world.reconcile();
    expect(world.updates).toBe(before + 1);
  });

  it("is over when nothing was changed for a minute in which it could have been put right", async () => {
    const world = await contested();
    expect(await world.reconcile()).toEqual({ afterMs: 70_000 });
    vi.advanceTimersByTime(69_000);
    expect(await world.reconcile()).toEqual({ afterMs: 1_000 });
    expect(world.contested()?.status).toBe("True");
    vi.advanceTimersByTime(1_000);
    expect(await world.reconcile()).toBe("done");
    expect(world.contested()).toMatchObject({ status: "False", reason: "Settled" });

    const before = world.updates;
    world.edit();
    expect(await world.reconcile()).toBe("done");
    expect(world.updates).toBe(before + 1);
    expect(world.contested()?.status).toBe("False");
  });
});

describe("what ends by itself again and again", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Which of these the world's Deployment stands for. */
  const ended = (owned: readonly LiveObject[]) => owned.filter(({ status }) => status === "ended").map(objectId);
  /** An object whose replacement has ended as well. */
  async function failing(others: () => string[] = () => []): Promise<World> {
    const world = new World({ ...counting, shortfall: (_, owned) => [...ended(owned), ...others()], ended });
    await world.reconcile();
    world.end();
    expect(await world.reconcile()).toBe("done");
    expect(world.updates).toBe(2);
    world.end();
    return world;
  }

  it("is replaced at once, and then later each time", async () => {
    const world = await failing();
    for (const seconds of [10, 20, 40, 80, 160, 300, 300]) {
      const before = world.updates;
      expect(await world.reconcile()).toEqual({ afterMs: seconds * 1_000 });
      expect(world.reconciling()).toMatchObject({ status: "True", reason: "BackOff" });
      vi.advanceTimersByTime(seconds * 1_000 - 1);
      await world.reconcile();
      expect(world.updates).toBe(before);
      vi.advanceTimersByTime(1);
      await world.reconcile();
      expect(world.updates).toBe(before + 1);
      expect(world.reconciling()).toBeUndefined();
      world.end();
    }
  });

  it("is told in a condition and one event, which are over when somebody removes it", async () => {
    const world = await failing();
    await world.reconcile();
    await world.reconcile();
    expect(world.reconciling()?.message).toContain("apps/v1/Deployment/default/cache");
    expect(world.events.filter((reason) => reason === "BackOff")).toHaveLength(1);

    world.mend();
    expect(await world.reconcile()).toBe("done");
    expect(world.reconciling()).toBeUndefined();
  });

  it("does not keep what is missing besides from being made good: what waits is left as it is", async () => {
    let missing: string[] = [];
    const world = await failing(() => missing);
    expect(await world.reconcile()).toEqual({ afterMs: 10_000 });
    const before = world.updates;

    missing = ["1 instead of 2"];
    expect(await world.reconcile()).toEqual({ afterMs: expect.any(Number) });

    expect(world.updates).toBe(before + 1);
    const { owned = [] } = world.program.mock.lastCall?.[1] ?? {};
    expect(ended(owned)).toEqual([]);
    expect(owned).toHaveLength(1);
    missing = [];
    world.end();
    expect(await world.reconcile()).toEqual({ afterMs: 10_000 });
    expect(world.updates).toBe(before + 1);
  });

  it("does not keep a new spec from being brought about", async () => {
    const world = await failing();
    const before = world.updates;
    world.object = { ...world.object, metadata: { ...world.object.metadata, generation: 2, resourceVersion: "999" } };
    await world.reconcile();
    expect(world.updates).toBe(before + 1);
  });

  it("is replaced at once after a minute in which nothing ended", async () => {
    const world = await failing();
    vi.advanceTimersByTime(70_000);
    expect(await world.reconcile()).toBe("done");
    expect(world.updates).toBe(3);
    world.end();
    expect(await world.reconcile()).toEqual({ afterMs: 10_000 });
  });
});

describe("an update that is refused for good", () => {
  const REFUSAL: UpdateFailure = { errorClass: "terminal", reason: "Conflict", message: "belongs to another object" };

  it("is not tried again", async () => {
    const world = new World();
    world.refusal = REFUSAL;
    expect(await world.reconcile()).toBe("done");
    expect(await world.reconcile()).toBe("done");
    expect(world.updates).toBe(1);
  });

  it("is tried again when what refused it went while it ran", async () => {
    const world = new World();
    world.refusal = REFUSAL;
    world.program.mockImplementationOnce(() => world.reconciler.reconsider(KEY));
    expect(await world.reconcile()).toBe("retry");

    world.refusal = undefined;
    expect(await world.reconcile()).toBe("done");
    expect(world.updates).toBe(2);
  });
});

describe("an object that is tended to", () => {
  it("gets another turn after its first update: a predecessor may have made what will bring no event", async () => {
    const tend = vi.fn(async () => undefined);
    const world = new World({ ...memcached, tend });

    expect(await world.reconcile()).toEqual({ afterMs: expect.any(Number) });
    expect(tend).not.toHaveBeenCalled();
    expect(await world.reconcile()).toBe("done");

    expect(tend).toHaveBeenCalledOnce();
    expect(world.updates).toBe(1);
  });
});

describe("what an update of which nobody saw the end has made", () => {
  const removeStrays = vi.fn(async () => {});
  beforeEach(() => void removeStrays.mockClear());

  it("is removed after the next success, except what that one has, and not again", async () => {
    const world = new World({ ...memcached, removeStrays });
    await world.reconcile();
    expect(removeStrays).toHaveBeenCalledExactlyOnceWith(
      { uid: "uid-cache", description: "Memcached.cache.example.com/default/cache" },
      [expect.objectContaining({ manifest: DEPLOYMENT })],
      { release: false },
    );
    world.edit();
    await world.reconcile();
    expect(removeStrays).toHaveBeenCalledOnce();
  });

  it("keeps the object from being Ready as long as it cannot be removed", async () => {
    removeStrays.mockRejectedValueOnce(new Error("the database is away"));
    const world = new World({ ...memcached, removeStrays });
    const ready = () => findCondition(statusOf(world.object).conditions, "Ready")?.status;
    expect(await world.reconcile()).toBe("retry");
    expect(ready()).toBe("False");
    expect(await world.reconcile()).toBe("done");
    expect(ready()).toBe("True");
    expect(removeStrays).toHaveBeenCalledTimes(2);
  });
});

describe("a kind whose program depends on what is alive", () => {
  it("gets another look after an update of which nobody saw the end: what that made may be one too many", async () => {
    let surplus: string[] = ["2 instead of 1"];
    const world = new World({ ...counting, shortfall: () => surplus });
    expect(await world.reconcile()).toEqual({ afterMs: expect.any(Number) });
    surplus = [];
    await world.reconcile();
    expect(await world.reconcile()).toBe("done");
  });

  /** One that the cache does not show any more, or not yet, what it made. */
  async function behind(shownOwned: LiveObject[]): Promise<World> {
    const shortfall = (_: unknown, owned: readonly LiveObject[]) => (owned.length === 1 ? [] : ["none instead of 1"]);
    const world = new World({ ...counting, shortfall });
    await world.reconcile();
    await world.reconcile();
    world.shownOwned = shownOwned;
    return world;
  }

  it("is not updated for what is short only in a cache that is behind", async () => {
    const world = await behind([]);
    const before = world.updates;
    expect(await world.reconcile()).toBe("done");
    expect(world.updates).toBe(before);
    world.shownOwned = undefined;
    expect(await world.reconcile()).toBe("done");
    expect(world.updates).toBe(before);
  });

  it("goes by what the API server has, whatever a cache shows", async () => {
    const world = await behind([]);
    world.object = { ...world.object, metadata: { ...world.object.metadata, generation: 2, resourceVersion: "999" } };
    await world.reconcile();
    const found = expect.objectContaining({ kind: "Deployment" });
    expect(world.program).toHaveBeenLastCalledWith(expect.anything(), expect.objectContaining({ owned: [found] }));
  });

  it("gets none after one whose end was seen", async () => {
    const world = new World({ ...counting, shortfall: () => [] });
    await world.reconcile();
    world.edit();
    expect(await world.reconcile()).toBe("done");
  });
});

describe("a clock that is set back", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const setBack = () => vi.setSystemTime(Date.now() - 24 * 3_600_000);

  it("does not put off repairs", async () => {
    const world = new World();
    await world.reconcile();
    world.edit();
    await world.reconcile();
    const before = world.updates;

    setBack();
    world.edit();
    expect(await world.reconcile()).toBe("done");

    expect(world.updates).toBe(before + 1);
  });

  it("does not keep an object from being tended to", async () => {
    const tend = vi.fn(async (_object: unknown, { apply }: Tending) => {
      await apply(DEPLOYMENT, "quota");
      return undefined;
    });
    const world = new World({ ...memcached, tend });
    await world.reconcile();
    await world.reconcile();
    expect(tend).toHaveBeenCalledOnce();

    setBack();
    vi.advanceTimersByTime(1_000);
    await world.reconcile();

    expect(tend).toHaveBeenCalledTimes(2);
  });
});

describe("a cache that is behind", () => {
  const successor = (world: World, changes: object): LiveObject => ({
    ...world.object,
    metadata: { ...world.object.metadata, resourceVersion: "200", ...changes },
  });

  it.each([
    ["has a newer spec", { generation: 2 }],
    ["was deleted and made again under its name", { uid: "uid-successor" }],
    ["is being deleted", { deletionTimestamp: "2026-01-01T00:00:00Z" }],
  ])("leads to no update of an object that %s, until it has caught up", async (_, changes) => {
    const world = new World();
    world.shown = world.object;
    world.object = successor(world, changes);
    expect(await world.reconcile()).toBe("retry");
    expect(world.updates).toBe(0);
    expect(world.object.status).toBeUndefined();
  });

  it("is asked again, and then leads to one", async () => {
    const world = new World();
    world.shown = world.object;
    world.object = successor(world, { generation: 2 });
    await world.reconcile();
    world.shown = undefined;
    await world.reconcile();
    expect(world.updates).toBe(1);
  });
});
