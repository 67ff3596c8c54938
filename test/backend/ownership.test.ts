import pino from "pino";
import { describe, expect, it } from "vitest";
import { RetryableError } from "../../providers/errors";
import type { DestroyOptions } from "../../src/automation/engine";
import type { BackendOwner } from "../../src/automation/owner-file";
import type { StackState } from "../../src/automation/stack-state";
import { ownedEngine } from "../../src/backend/owned-engine";
import { isOwner } from "../../src/backend/owner";
import { BackendOwnership, type BackendOwnershipOptions } from "../../src/backend/ownership";
import type { StackHolder } from "../../src/backend/stack-holders";

const UID = "0f3b6f0e-58a2-4f43-8f0e-0f7d0f0a1c11";
const OTHER_UID = "11111111-2222-3333-4444-555555555555";
const OWN = { cluster: "prod", clusterUid: "uid-prod", namespace: "kindstack-system" };
const stack = (name: string) => `tenant.${name}-0123456789abcdef012`;

/** A backend, and the objects of a cluster. */
class World {
  owner: BackendOwner | undefined;
  claims = 0;
  /** The owner of each stack's resources. */
  readonly stacks = new Map<string, string | undefined>();
  holders: StackHolder[] = [];
  cluster: { name: string; uid: string } | undefined = { name: OWN.cluster, uid: OWN.clusterUid };
  unlistable: Error | undefined;
  /** Who is first. */
  before: (() => void) | undefined;
  readonly options: BackendOwnershipOptions = {
    engine: {
      backendOwner: async () => this.owner,
      claimBackend: async (owner) => {
        this.claims++;
        this.before?.();
        this.owner ??= owner;
        return this.owner;
      },
      listStacks: async () => [...this.stacks.keys()].map((name) => ({ name })),
      exportStack: async (name) => {
        const uid = this.stacks.get(name);
        return {
          version: 3,
          deployment: { resources: [{ urn: "u", type: "t", outputs: { owner: { uid } } }] },
        } as StackState;
      },
    },
    namespace: OWN.namespace,
    cluster: async () => this.cluster,
    holders: async () => {
      if (this.unlistable) throw this.unlistable;
      return this.holders;
    },
    logger: pino({ level: "silent" }),
  };
  readonly ownership = new BackendOwnership(this.options);

  object(name: string, { isRecorded = true } = {}): void {
    this.holders.push({ stack: stack(name), uid: UID, isRecorded });
  }

  async claimed(): Promise<boolean> {
    await this.ownership.examine();
    return this.ownership.refusal === undefined;
  }
}

const owned = (different: Partial<BackendOwner> = {}): BackendOwner => ({ id: "id", ...OWN, since: "", ...different });

describe("a backend without a record", () => {
  const cases: Record<string, [arrange: (world: World) => void, isClaimed: boolean]> = {
    "is claimed when nothing is there": [() => {}, true],
    "is claimed when objects have no stacks yet": [(world) => world.object("a", { isRecorded: false }), true],
    "is claimed when it has a platform team's own stack": [
      (world) => world.stacks.set("installation", undefined),
      true,
    ],
    "is claimed with the stack of an object of here": [
      (world) => {
        world.object("a");
        world.object("missing");
        world.stacks.set(stack("a"), UID);
      },
      true,
    ],
    "is claimed with a stack of `pulumi up` for an object of here": [
      (world) => {
        world.object("a", { isRecorded: false });
        world.stacks.set(stack("a"), "pulumi:tenant-a");
      },
      true,
    ],
    "is claimed with a stack of plugins' resources alone": [
      (world) => {
        world.object("a");
        world.stacks.set(stack("a"), undefined);
      },
      true,
    ],
    "is not claimed when it has none of the stacks that objects have": [(world) => world.object("a"), false],
    "is not claimed when its stacks are of no object of here": [(world) => world.stacks.set(stack("a"), UID), false],
    "is not claimed when its stacks are of others' objects of the same names": [
      (world) => {
        world.object("a");
        world.stacks.set(stack("a"), OTHER_UID);
      },
      false,
    ],
    "is not claimed when objects cannot be listed": [
      (world) => {
        world.unlistable = new Error("forbidden");
      },
      false,
    ],
    "is not claimed in a cluster that cannot be told": [
      (world) => {
        world.cluster = undefined;
      },
      false,
    ],
  };
  it.each(Object.entries(cases))("%s", async (_, [arrange, isClaimed]) => {
    const world = new World();
    arrange(world);
    expect(await world.claimed()).toBe(isClaimed);
    expect(world.claims).toBe(isClaimed ? 1 : 0);
    expect(world.ownership.refusal?.reason).toBe(isClaimed ? undefined : "BackendUnknown");
    expect(world.owner && isOwner(world.owner, OWN)).toBe(isClaimed || undefined);
  });

  it("is another's when that is faster", async () => {
    const world = new World();
    world.before = () => {
      world.owner = owned({ cluster: "staging", clusterUid: "uid-staging" });
    };
    expect(await world.claimed()).toBe(false);
    expect(world.ownership.refusal?.reason).toBe("BackendForeign");
  });

  it("is not claimed anew when the record was there and is gone", async () => {
    const world = new World();
    expect(await world.claimed()).toBe(true);
    const { owner } = world;
    world.owner = undefined;
    expect(await world.claimed()).toBe(false);
    expect(world.ownership.refusal?.message).toContain("kindstack state claim -n kindstack-system");
    world.owner = owner;
    expect(await world.claimed()).toBe(true);
    expect(world.claims).toBe(1);
  });
});

it("a backend that was this operator's stays so while the API server does not answer", async () => {
  const world = new World();
  expect(await world.claimed()).toBe(true);
  world.cluster = undefined;
  world.unlistable = new Error("away");
  expect(await world.claimed()).toBe(true);
});

describe("the record of a backend", () => {
  it.each([
    ["the same", {}, true],
    ["another cluster", { cluster: "staging", clusterUid: "uid-staging" }, false],
    ["another cluster of the same name", { clusterUid: "uid-rebuilt" }, false],
    ["a copy of the cluster with a name of its own", { cluster: "copy" }, false],
    ["another installation in the cluster", { namespace: "elsewhere" }, false],
  ])("of %s", async (_, different, isOwn) => {
    const world = new World();
    world.owner = owned(different);
    expect(await world.claimed()).toBe(isOwn);
    expect(world.claims).toBe(0);
  });

  it("names in its command what others have written as one word", async () => {
    const world = new World();
    world.owner = owned({ cluster: "x; rm -rf ~" });
    await world.claimed();
    expect(world.ownership.refusal?.message).toContain("--from 'x; rm -rf ~'");
  });
});

describe("an engine with an owner", () => {
  const engineOf = (world: World, owners: string[]) =>
    ownedEngine(
      {
        destroy: async (_stack: string, { owner = "" }: DestroyOptions = {}) => {
          owners.push(owner);
          if (owner !== world.owner?.id) throw new RetryableError("BackendForeign", "another's");
        },
      } as never,
      world.ownership,
    );

  it("asks for nothing while the backend is refused", async () => {
    const world = new World();
    world.owner = owned({ cluster: "staging" });
    const owners: string[] = [];
    await expect(engineOf(world, owners).destroy("a")).rejects.toMatchObject({
      reason: "BackendForeign",
      dependency: "the state's backend",
    });
    expect(owners).toEqual([]);
  });

  it("continues when the same operator has claimed the backend again, and stops when another one has", async () => {
    const world = new World();
    world.owner = owned({ id: "first" });
    const owners: string[] = [];
    const engine = engineOf(world, owners);
    await engine.destroy("a");
    world.owner = owned({ id: "second" });
    await engine.destroy("a");
    world.owner = owned({ id: "third", clusterUid: "uid-rebuilt" });
    await expect(engine.destroy("a")).rejects.toMatchObject({ reason: "BackendForeign" });
    expect(owners).toEqual(["first", "first", "second", "second"]);
    expect(world.ownership.refusal?.message).toContain("UID uid-rebuilt");
  });
});

it("an ownership tells of each change, and examines a refused backend again until it is its own", async () => {
  const world = new World();
  world.owner = owned({ cluster: "staging" });
  const changes: (string | undefined)[] = [];
  const stop = new AbortController();
  const running = world.ownership.run(stop.signal, {
    refusal: () => changes.push(world.ownership.refusal?.reason),
    replaced: () => changes.push("replaced"),
  });
  await world.ownership.examine();
  world.owner = owned();
  await world.ownership.examine();
  await world.ownership.examine();
  world.owner = owned({ id: "of another folder" });
  await world.ownership.examine();
  stop.abort();
  await running;
  expect(changes).toEqual(["BackendForeign", undefined, "replaced"]);
});
