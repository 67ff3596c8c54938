import { createSecretKey } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson } from "../../providers/canonical-json";
import type { LiveObject } from "../../providers/kubernetes/client";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import { withObserved } from "../../providers/observation";
import type { PlannedChange } from "../../src/automation/planned-changes";
import { type PlanBasis, planDigests, planKey } from "../../src/plan/digest";
import { changedFields } from "../../src/plan/fields";
import type { AnyKind } from "../../stacks/contract/kind";
import { podSet } from "../../stacks/kinds/podset/kind";

const key = createSecretKey(Buffer.alloc(32, 1));
const otherKey = createSecretKey(Buffer.alloc(32, 2));

interface Wanted {
  name?: string;
  namespace?: string;
  uid?: string;
  spec?: object;
  password?: string;
  replicas?: number;
  labels?: Record<string, string>;
  /** Of the provider. */
  stub?: string;
}

/** An update of a Deployment that has a secret, as a preview tells it. */
function updateOf(wanted: Wanted = {}, operation: PlannedChange["operation"] = "update"): PlannedChange {
  const { name = "web", namespace = "team", uid = "uid-web", password = "hush", replicas = 2, labels = {} } = wanted;
  const { stub = OBJECT_STUB } = wanted;
  const inputs = (count: number, value: string) => ({
    __provider: stub,
    owner: { uid, description: `PodSet.apps/${namespace}/${name}` },
    password: value,
    manifest: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name, namespace, labels: { app: name, ...labels }, ownerReferences: [{ uid }] },
      spec: { replicas: count },
    },
  });
  const before = inputs(1, "[secret]");
  return {
    urn: `urn:pulumi:${namespace}.${name}::kindstack::t::${namespace}/${name}`,
    type: "pulumi-nodejs:dynamic/kubernetes:Deployment",
    name: `${namespace}/${name}`,
    operation,
    ...(operation !== "create" && { old: { inputs: before, outputs: before } }),
    inputs: inputs(replicas, "[secret]"),
    secretInputs: () => inputs(replicas, password),
    differsAt: (path) => path[0] === "password" && password !== "hush",
  };
}

function basisOf(wanted: Wanted = {}, changes: Partial<PlanBasis> = {}): PlanBasis {
  const { name = "web", namespace = "team", uid = "uid-web", spec = { replicas: 2 } } = wanted;
  const change = updateOf(wanted);
  return {
    kind: podSet,
    object: { metadata: { name, namespace, uid }, spec },
    operation: "update",
    programDigest: "p1",
    changes: [change],
    resources: [
      {
        change,
        shown: { name: change.name, type: "Deployment", operation: "update", fields: changedFields(change) },
      },
    ],
    observed: new Map([[change.urn, "o1"]]),
    untracked: [],
    references: [],
    ...changes,
  };
}

const digestsOf = (basis: PlanBasis) => planDigests(key, basis);
const usual = digestsOf(basisOf());

describe("the digest of a plan", () => {
  it("is the same for an object that is made again, and for fields in another order", () => {
    expect(digestsOf(basisOf({ uid: "uid-of-another" }))).toEqual(usual);
    fc.assert(
      fc.property(fc.jsonValue(), fc.infiniteStream(fc.nat()), (value, order) => {
        const shuffled = JSON.parse(JSON.stringify(value), (_key, item: unknown) =>
          typeof item === "object" && item !== null && !Array.isArray(item)
            ? Object.fromEntries(
                Object.entries(item)
                  .map((entry) => [order.next().value, entry] as const)
                  .sort(([a], [b]) => a - b)
                  .map(([, entry]) => entry),
              )
            : item,
        );
        expect(canonicalJson(shuffled)).toBe(canonicalJson(JSON.parse(JSON.stringify(value))));
      }),
    );
  });

  it("is the same for changes, and for what is removed besides, in another order", () => {
    const changes = [updateOf(), updateOf({ name: "second" })];
    const untracked = ["one", "two"].map((uid) => ({ metadata: { uid } }) as LiveObject);
    const [some, others] = [basisOf({}, { changes, untracked }), basisOf({}, { changes: changes.toReversed() })];
    expect(digestsOf({ ...others, untracked: untracked.toReversed() })).toEqual(digestsOf(some));
  });

  it.each<[string, PlanBasis]>([
    ["the name", basisOf({ name: "other" })],
    ["the namespace", basisOf({ namespace: "other" })],
    ["the spec", basisOf({ spec: { replicas: 3 } })],
    ["a field", basisOf({ replicas: 3 })],
    ["a label that stays as it is", basisOf({ labels: { a: "b" } })],
    ["the value of a secret", basisOf({ password: "other" })],
    ["what would be overwritten", basisOf({}, { observed: new Map([[updateOf().urn, "o2"]]) })],
    ["what is done", basisOf({}, { operation: "delete" })],
    ["that its resources stay", basisOf({}, { operation: "release" })],
    ["one change more", basisOf({}, { changes: [updateOf(), updateOf({ name: "second" })] })],
    ["one change less", basisOf({}, { changes: [] })],
    ["another operation", basisOf({}, { changes: [updateOf({}, "replace")], resources: [] })],
    ["what is removed besides", basisOf({}, { untracked: [{ metadata: { uid: "o" } } as LiveObject] })],
  ])("depends on %s", (_what, basis) => {
    expect(digestsOf(basis).digest).not.toBe(usual.digest);
  });

  it("depends on no status, and not on what stays the same", () => {
    const same = updateOf({ name: "same" }, "same");
    const object = { ...basisOf().object, status: { conditions: [{ type: "Ready" }] } };
    expect(digestsOf(basisOf({}, { object, changes: [same, updateOf()] }))).toEqual(usual);
  });

  it("differs for any two specs that differ", () => {
    fc.assert(
      fc.property(fc.object(), fc.object(), (one, other) => {
        const isSame = canonicalJson(one) === canonicalJson(other);
        expect(digestsOf(basisOf({ spec: one })).digest === digestsOf(basisOf({ spec: other })).digest).toBe(isSame);
      }),
    );
  });

  it("tells nothing to those who lack the key", () => {
    const others = planDigests(otherKey, basisOf());
    expect(others.digest).not.toBe(usual.digest);
    expect(others.group).not.toBe(usual.group);
    expect([...others.steps.values()]).not.toEqual([...usual.steps.values()]);
  });

  it("depends on what the object refers to where a preview does not tell a secret", () => {
    const { secretInputs: _, ...change } = updateOf();
    const plugin = (version: string) =>
      digestsOf(basisOf({}, { changes: [change], references: [{ id: "v1/Secret/team/password", version }] }));
    expect(plugin("1")).toEqual(plugin("1"));
    expect(plugin("1").digest).not.toBe(plugin("2").digest);
    const besides = (version: string) =>
      digestsOf(
        basisOf({}, { changes: [updateOf(), change], references: [{ id: "v1/Secret/team/password", version }] }),
      );
    expect(besides("1").digest).not.toBe(besides("2").digest);
    const told = (version: string) =>
      digestsOf(basisOf({}, { references: [{ id: "v1/Secret/team/password", version }] }));
    expect(told("1")).toEqual(told("2"));
  });
});

it("the digest of a step stays when another step is done, and is another when what it would overwrite changes", () => {
  const second = updateOf({ name: "second" });
  const both = digestsOf(basisOf({}, { changes: [updateOf(), second] }));
  expect(both.digest).not.toBe(usual.digest);
  expect(both.steps.get(updateOf().urn)).toBe(usual.steps.get(updateOf().urn));
  const moved = digestsOf(basisOf({}, { observed: new Map([[updateOf().urn, "o2"]]) }));
  expect(moved.steps.get(updateOf().urn)).not.toBe(usual.steps.get(updateOf().urn));
});

it("the digest of a creation is that of its step while there is nothing, whatever there is by now", () => {
  const change = updateOf({}, "create");
  const seen = (live: object | null) =>
    new Map([[change.urn, withObserved(undefined, change.urn, "Create", live, {})]]);
  const effect = (operation: "create" | "update") => ({
    change,
    shown: { name: change.name, type: "Deployment", operation, fields: [] },
  });
  const digestsWith = (live: object | null, operation: "create" | "update") =>
    digestsOf(basisOf({}, { changes: [change], resources: [effect(operation)], observed: seen(live) }));
  const before = digestsWith(null, "create");
  const after = digestsWith({ spec: {} }, "update");
  expect(after.steps.get(change.urn)).not.toBe(before.steps.get(change.urn));
  expect(after.creations.get(change.urn)).toBe(before.steps.get(change.urn));
});

describe("the digest of a group", () => {
  it("is the same for all objects with the same difference", () => {
    const other = digestsOf(basisOf({ name: "api", namespace: "b", uid: "uid-api", spec: { any: 1 } }));
    expect(other.group).toBe(usual.group);
    expect(other.digest).not.toBe(usual.digest);
  });

  it("is another for another difference, though it has the object's name in it", () => {
    const renamed = (name: string) => basisOf({ name, labels: { extra: name } });
    const creation = (name: string, labels: Record<string, string> = {}) => {
      const change = updateOf({ name, labels }, "create");
      return digestsOf(basisOf({ name }, { changes: [change], resources: [] })).group;
    };
    expect(digestsOf(basisOf({ replicas: 3 })).group).not.toBe(usual.group);
    const withPassword = (password: string) => digestsOf(basisOf({ password })).group;
    expect(withPassword("other")).not.toBe(usual.group);
    expect(withPassword("other")).not.toBe(withPassword("another")); // the field shows neither
    expect(digestsOf(renamed("api")).group).toBe(usual.group); // what stays is no difference
    expect(creation("a")).toBe(creation("b"));
    expect(creation("a", { x: "{name}" })).not.toBe(creation("b", { x: "b" }));
    expect(creation("a", { x: "ab" })).not.toBe(creation("b", { x: "bb" }));
  });

  it("is the same with other code that declares the same, unless that applies it, or makes inputs of outputs", () => {
    const capabilities = { ...podSet.capabilities, sdkRuntime: true } as const;
    const own = (version?: number) => ({
      ...podSet,
      capabilities: { providers: [{ stub: "own", provider: {} as never, ...(version && { version }) }] },
    });
    const of = (kind: AnyKind, programDigest = "p1") => {
      return digestsOf(
        basisOf({ stub: kind.capabilities.providers?.[0]?.stub ?? OBJECT_STUB }, { kind, programDigest }),
      );
    };
    expect(of(podSet, "p2")).toEqual(usual);
    for (const kind of [{ ...podSet, capabilities }, own()]) {
      expect(of(kind, "p2").digest).not.toBe(of(kind).digest);
      expect(of(kind, "p2").group).not.toBe(of(kind).group);
    }
    expect(of(own(7), "p2")).toEqual(of(own(7)));
    expect(of(own(7)).digest).not.toBe(of(own(8)).digest);
    expect(of(own(7)).group).not.toBe(of(own(8)).group);
  });

  it("of a deletion, and of an update that removes what is untracked, is the object's own", () => {
    const deletionOf = (name: string) => digestsOf(basisOf({ name }, { operation: "delete" })).group;
    expect(deletionOf("a")).not.toBe(deletionOf("b"));
    const untracked = [{ metadata: { uid: "untracked" } } as LiveObject];
    const removalBy = (name: string) => digestsOf(basisOf({ name }, { untracked })).group;
    expect(removalBy("a")).not.toBe(removalBy("b"));
  });
});

it("the key is the passphrase's, and without one the process's own", async () => {
  const digestWith = async (passphrase: string | undefined) =>
    planDigests(
      await planKey({
        passphrase: passphrase === undefined ? undefined : { value: passphrase },
        keyService: undefined,
      })(),
      basisOf(),
    ).digest;
  expect(await digestWith("a")).toBe(await digestWith("a"));
  expect(await digestWith("a")).not.toBe(await digestWith("b"));
  expect(await digestWith(undefined)).not.toBe(await digestWith(undefined));
});
