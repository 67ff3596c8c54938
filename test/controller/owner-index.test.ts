import { describe, expect, it } from "vitest";
import type { ObjectChange } from "../../src/cache/change";
import type { Informer } from "../../src/cache/informer";
import type { InformerFactory } from "../../src/cache/informer-factory";
import { objectItem } from "../../src/controller/object-item";
import { BURST_DELAY_MS, OwnerIndex } from "../../src/controller/owner-index";
import { tenant } from "../../stacks/kinds/tenant/kind";
import { acme, globex, marksOf, namespace } from "../objects";
import { stub } from "../stub";

const first = acme;
const second = { ...acme, uid: "uid-of-the-second" };
const item = objectItem(tenant, { name: "acme" });

/** An index with these owners, by UID. */
async function indexWith(...uids: string[]) {
  const woken: string[] = [];
  const delays: number[] = [];
  let change: (change: ObjectChange) => void = () => {};
  const create: InformerFactory["create"] = async (_type, { onChange }) => {
    change = onChange;
    return {} as Informer;
  };
  const addAfter = ({ key }: { key: string }, ms: number) => {
    woken.push(key);
    delays.push(ms);
  };
  const index = new OwnerIndex(stub<InformerFactory>({ create }), { addAfter }, { released: () => {} });
  await index.watch({ apiVersion: "v1", kind: "Namespace" });
  for (const uid of uids) index.set(uid, item);
  return { index, woken, delays, changed: (one: ObjectChange) => change(one) };
}

const owned = (owner: typeof acme) => namespace("acme-dev", marksOf(owner, { created: true }));
const deleted = (object = owned(first)): ObjectChange => ({ type: "deleted", object, previous: object });

describe("a change of what an object owns", () => {
  it("leads to the object", async () => {
    const { woken, changed } = await indexWith(first.uid);
    changed({ type: "added", object: owned(first) });
    changed(deleted());
    expect(woken).toEqual(["acme", "acme"]);
  });

  it("waits for others that come with it, unless it is a deletion", async () => {
    const { delays, changed } = await indexWith(first.uid);
    changed({ type: "modified", object: owned(first), previous: owned(first) });
    changed(deleted());
    expect(delays).toEqual([BURST_DELAY_MS, 0]);
  });

  it("leads to the one that was made again under its name, which may wait for that to go", async () => {
    const { index, woken, changed } = await indexWith(first.uid);
    index.drop(first.uid);
    index.set(second.uid, item);
    changed(deleted());
    expect(woken).toEqual(["acme"]);
  });

  it("leads to that one also when its predecessor is removed only then", async () => {
    const { index, woken, changed } = await indexWith(first.uid);
    index.set(second.uid, objectItem(tenant, { name: "acme" }));
    index.drop(first.uid);
    changed(deleted());
    expect(woken).toEqual(["acme"]);
  });

  it("leads to no object when there is no object of the name, nor for another one's", async () => {
    const { index, woken, changed } = await indexWith(first.uid);
    changed(deleted(owned(globex)));
    index.drop(first.uid);
    changed(deleted());
    expect(woken).toEqual([]);
  });
});
