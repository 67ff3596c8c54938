import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../../providers/kubernetes/client";
import { type AnyKind, statusOf } from "../../../stacks/contract/kind";
import { memcached } from "../../../stacks/kinds/memcached/kind";
import { liveObject } from "../../objects";
import { counting, destroyed, Harness, reconciled } from "./harness";

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
    liveObject({ kind: "Secret", metadata: { name: "login", resourceVersion } });
  const shown = (harness: Harness, version: string | undefined, cacheVersion = version ?? "60") => {
    harness.secret = version === undefined ? undefined : secret(version);
    harness.reference = { object: harness.secret, cacheVersion };
    return harness.reconcile();
  };
  const reading = async (version?: string) => {
    const harness = new Harness(referring);
    await shown(harness, version, version ?? "50");
    return harness;
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
    expect(harness.synced()?.status).toBe("True");
  });

  it("are labels and annotations, if it looks at them", async () => {
    const label = (harness: Harness, labels: Record<string, string>) => {
      harness.setMetadata({ labels });
      return harness.reconcile();
    };
    const blind = await reconciled();
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
  async function behind(): Promise<Harness> {
    const needsReconcile = (_: unknown, { length }: readonly LiveObject[]) =>
      length === 1 ? [] : ["none instead of 1"];
    const harness = await reconciled(counting({ needsReconcile }));
    await harness.reconcile();
    harness.shownOwned = [];
    return harness;
  }

  it("is not updated for what is short only in a cache that is behind", async () => {
    const harness = await behind();
    const before = harness.updates;
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(before);
    harness.shownOwned = undefined;
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(before);
  });

  it("goes by what the API server has, whatever a cache shows", async () => {
    const harness = await behind();
    harness.changeSpec();
    await harness.reconcile();
    const found = expect.objectContaining({ kind: "Deployment" });
    expect(harness.program).toHaveBeenLastCalledWith(expect.anything(), expect.objectContaining({ owned: [found] }));
  });

  it("gets none after one whose end was seen", async () => {
    const harness = await reconciled(counting({ needsReconcile: () => [] }));
    harness.edit();
    expect(await harness.reconcile()).toBe("done");
  });
});

describe("a cache that is behind", () => {
  /** An object that has changed so, which the cache does not show yet. */
  function changed(changes: object): Harness {
    const harness = new Harness();
    harness.shown = harness.object;
    harness.setMetadata({ resourceVersion: "200", ...changes });
    return harness;
  }

  it.each([
    ["has a newer spec", { generation: 2 }],
    ["was deleted and made again under its name", { uid: "uid-successor" }],
    ["is being deleted", { deletionTimestamp: "2026-01-01T00:00:00Z" }],
  ])("leads to no update of an object that %s, until it has caught up", async (_, changes) => {
    const harness = changed(changes);
    expect(await harness.reconcile()).toBe("retry");
    expect(harness.updates).toBe(0);
    expect(harness.object.status).toBeUndefined();
  });

  it("is asked again, and then leads to one", async () => {
    const harness = changed({ generation: 2 });
    await harness.reconcile();
    harness.shown = undefined;
    await harness.reconcile();
    expect(harness.updates).toBe(1);
  });
});

describe("a cache that is known to be up to date", () => {
  it("saves an update and a destroy the request for the object", async () => {
    const harness = await reconciled();
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
    harness.destroys.push(destroyed());
    expect(await reads(true, () => harness.delete())).toBe(0);
    expect(harness.released).toEqual([false]);
  });

  it("leads to no second destroy of an object that it still shows", async () => {
    const harness = await reconciled();
    harness.cacheIsFresh = true;
    harness.delete();
    harness.destroys.push(destroyed());
    await harness.reconcile();

    for (const _ of [1, 2]) expect(await harness.reconcile()).toBe("done");

    expect(harness.released).toHaveLength(1);
    expect(harness.events.filter((reason) => reason === "Deleted")).toHaveLength(1);
  });

  it("leads to the destroy of a successor that is deleted as well", async () => {
    const harness = new Harness();
    harness.cacheIsFresh = true;
    harness.delete();
    harness.destroys.push(destroyed(), destroyed());
    await harness.settle();
    harness.setMetadata({ uid: "uid-successor" });
    await harness.settle();
    expect(harness.released).toHaveLength(2);
  });
});

it("an object whose kind fails to tell what has completed is updated all the same", async () => {
  const completed = () => {
    throw new TypeError("owned.status is undefined");
  };
  const harness = await reconciled(counting({ needsReconcile: () => [], completed }));
  expect(harness.updates).toBe(1);
});
