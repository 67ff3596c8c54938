import fc from "fast-check";
import { expect } from "vitest";
import { known, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { objectsAmong } from "../../providers/kubernetes/object";
import { OWNER_ANNOTATION, OWNER_UID_LABEL, ownerUidOf } from "../../providers/kubernetes/ownership";
import { unescapeReserved } from "../../providers/literal";
import { nameOf } from "../../src/automation/urn";
import { installKinds } from "../../src/operator/install";
import type { FieldChange, ResourcePlan } from "../../src/plan/resource-plan";
import { ClusterView } from "../../src/preview/cluster-view";
import { preview, selectCandidates } from "../../src/preview/preview";
import { parseObject } from "../../stacks/contract/kind";
import { objectKey, stackName } from "../../stacks/contract/object";
import { runProgram } from "../../stacks/contract/run-program";
import { controlPlane } from "../control-plane";
import { TestCluster } from "../providers/kubernetes/test-cluster";
import { bundle, type Part } from "./bundle";
import { openTestEngine } from "./engine";

const RESOURCES = ["r", "s", "t"];
const PLACES = ["a", "b", "c"];
const TYPES = ["ConfigMap", "Secret"] as const;

/** What others do with an object before the preview. */
const DEEDS = ["nothing", "delete", "edit", "take", "strip", "find", "hold"] as const;

export interface Scenario {
  /** What the stack has. */
  first: Part[];
  deeds: Record<string, (typeof DEEDS)[number]>;
  /** What it is to have; `undefined` when the object is deleted. */
  second: Part[] | undefined;
  refresh: boolean;
}

const part = (labels: readonly string[]) =>
  fc.record({
    resource: fc.constantFrom(...RESOURCES),
    at: fc.constantFrom(...PLACES),
    type: fc.constantFrom(...TYPES),
    text: fc.constantFrom("1", "2", "3"),
    label: fc.constantFrom(...labels),
    immutable: fc.boolean(),
    replaces: fc.boolean(),
  });
const parts = (...labels: string[]) =>
  fc
    .uniqueArray(part(labels), { maxLength: 3, selector: ({ resource }) => resource })
    .map((all) => all.filter(({ at }, index) => all.findIndex((other) => other.at === at) === index));

/** @param deleted whether the object is deleted in the end */
export function scenarios(deleted: boolean): fc.Arbitrary<Scenario> {
  return fc.record({
    first: parts("x", "y"),
    deeds: fc.record(Object.fromEntries(PLACES.map((at) => [at, fc.constantFrom(...DEEDS)]))),
    second: deleted ? fc.constant(undefined) : parts("x", "y", "x", "y", "not a label"),
    refresh: fc.boolean(),
  });
}

/** An engine and a cluster, where scenarios are played. */
export async function openStage() {
  const cluster = await TestCluster.open(controlPlane());
  await installKinds(cluster.client, [bundle]);
  const { engine, close } = await openTestEngine();
  let count = 0;

  /** Everything that could be touched, by type and name. */
  async function look(prefix: string): Promise<Map<string, LiveObject>> {
    const lists = await Promise.all(
      TYPES.map((kind) => cluster.client.list({ apiVersion: "v1", kind }, { namespace: cluster.namespace })),
    );
    const objects = lists.flatMap(({ items }) => items).filter(({ metadata }) => metadata.name.startsWith(prefix));
    return new Map(objects.map((object) => [`${object.kind}/${object.metadata.name}`, object]));
  }

  async function act(kind: string, name: string, deed: Scenario["deeds"][string]): Promise<void> {
    const type = { apiVersion: "v1", kind };
    const live = await known(cluster.client.get(type, name, cluster.namespace));
    const stranger = {
      labels: { [OWNER_UID_LABEL]: "stranger" },
      annotations: { [OWNER_ANNOTATION]: "Bundle/stranger" },
    };
    const found = (metadata: object): Manifest => ({
      ...type,
      metadata: { name, namespace: cluster.namespace, ...metadata },
      data: { text: "Zm91bmQ=" },
    });
    const patch = (change: object) => cluster.client.mergePatch(type, name, cluster.namespace, change);
    if (live === undefined) {
      if (deed === "find") await cluster.client.create(found({}));
      if (deed === "hold") await cluster.client.create(found(stranger));
      return;
    }
    if (deed === "delete") await cluster.client.delete(type, name, cluster.namespace);
    if (deed === "edit") await patch({ metadata: { labels: { label: "edited", more: "kept" } } });
    if (deed === "take") await patch({ metadata: stranger });
    if (deed === "strip") await patch({ metadata: { labels: { [OWNER_UID_LABEL]: null } } });
  }

  /** Plays a scenario: what the preview says is what the update does. */
  async function play({ first, deeds, second, refresh }: Scenario): Promise<void> {
    const prefix = `n${count++}-`;
    const manifest = (all: readonly Part[]) => ({
      apiVersion: "preview.kindstack.dev/v1",
      kind: "Bundle",
      metadata: { name: prefix.slice(0, -1), namespace: cluster.namespace },
      spec: { parts: all.map((one) => ({ ...one, at: prefix + one.at })) },
    });
    const stack = stackName(bundle, objectKey(manifest([]).metadata));
    const update = async (all: readonly Part[], options: object) => {
      const { object } = await cluster.client.apply(manifest(all), { fieldManager: "kubectl" });
      const description = `Bundle.preview.kindstack.dev/${objectKey(object.metadata)}`;
      const owner = { uid: object.metadata.uid, description };
      const parsed = parseObject(bundle, object);
      const program = () => runProgram(bundle, parsed, { owner, owned: [], recorded: new Set(), watched: [] });
      return engine.up(stack, program, options);
    };
    expect((await update(first, {})).failures).toEqual([]);
    for (const [at, deed] of Object.entries(deeds)) for (const kind of TYPES) await act(kind, prefix + at, deed);

    const declared = second ?? [];
    const source = (all: readonly Part[]) => ({ objects: [{ manifest: manifest(all), file: "f" }], problems: [] });
    const none = { objects: [], problems: [] };
    const selection = second
      ? selectCandidates([bundle], "default", source(second))
      : selectCandidates([bundle], "default", none, source(first));
    const report = await preview({ engine, cluster: await ClusterView.open(cluster.client), refresh }, selection);
    const [plan] = report.objects;
    const state = unescapeReserved(await engine.exportStack(stack));
    const before = await look(prefix);
    const { metadata } = (await known(
      cluster.client.get(bundleType, prefix.slice(0, -1), cluster.namespace),
    )) as LiveObject;
    const result = second ? await update(second, { refresh }) : await engine.destroy(stack);
    const after = await look(prefix);

    const failed = result.summary.result !== "succeeded";
    const isChecked = plan?.resources.every(({ notChecked }) => notChecked === undefined) ?? true;
    if (isChecked || !failed) {
      expect({ failed: plan?.action === "failed", why: plan?.errors }).toEqual({
        failed,
        why: failed ? expect.anything() : [],
      });
    }
    if (failed || plan?.action === "failed") return;

    const old = new Map(
      (state?.deployment.resources ?? []).flatMap(({ urn, outputs = {} }) =>
        objectsAmong([{ outputs }]).map((made) => [
          `${made.manifest.kind} ${nameOf(urn)}`,
          `${made.manifest.kind}/${made.manifest.metadata.name}`,
        ]),
      ),
    );
    const wanted = new Map(declared.map(({ resource, type, at }) => [`${type} ${resource}`, `${type}/${prefix}${at}`]));
    const taken = new Set(wanted.values());
    for (const name of new Set([...old.keys(), ...wanted.keys()])) {
      const said = plan?.resources.find((resource) => `${resource.type} ${resource.name}` === name);
      const [from, to] = [old.get(name), wanted.get(name)];
      const happened = whatHappened({ from, to, before, after, uid: metadata.uid, taken, old });
      const context = JSON.stringify({ name, from, to, said: said?.operation, fields: said?.fields });
      expect(happened, context).toContain(said?.operation ?? "nothing");
      if (to !== undefined && said !== undefined) expectFields(said, before.get(to), after.get(to));
    }
  }

  return {
    play,
    async close() {
      await close();
      await cluster.close();
    },
  };
}

const bundleType = { apiVersion: "preview.kindstack.dev/v1", kind: "Bundle" };

interface Seen {
  from: string | undefined;
  to: string | undefined;
  before: ReadonlyMap<string, LiveObject>;
  after: ReadonlyMap<string, LiveObject>;
  uid: string;
  taken: ReadonlySet<string>;
  old: ReadonlyMap<string, string>;
}

/** The words that are right for what became of a resource, by what was and is alive. */
function whatHappened({ from, to, before, after, uid, taken, old }: Seen): (ResourcePlan["operation"] | "nothing")[] {
  const [lost, left] = from === undefined ? [] : [before.get(from), after.get(from)];
  const isLost = lost !== undefined && left?.metadata.uid !== lost.metadata.uid;
  if (to === undefined) {
    if (taken.has(from ?? "")) return ["nothing"];
    if (lost === undefined) return ["delete", "nothing"]; // it was gone already
    return [isLost ? "delete" : "release"];
  }
  const [was, is] = [before.get(to), after.get(to)];
  if (from !== undefined && from !== to && !taken.has(from)) {
    // What was gone already is replaced where only the state tells, and made anew after a refresh.
    const fresh = { to, before, after, uid, taken, old };
    return lost === undefined ? ["replace", ...whatHappened({ ...fresh, from: undefined })] : ["replace"];
  }
  if (is === undefined) return ["nothing"];
  if (was === undefined) return ["create"];
  if (was.metadata.uid !== is.metadata.uid) return ["replace"];
  if (from === to) return same(was, is) ? ["nothing", "update"] : ["update"];
  if ([...old.values()].includes(to)) return ["move"];
  return [ownerUidOf(was) === uid ? "update" : "adopt"];
}

/** The fields that a manifest sets, without what Kindstack itself records. */
function fieldsOf({ data, immutable, metadata }: LiveObject): Record<string, unknown> {
  const { [OWNER_UID_LABEL]: _, ...labels } = metadata.labels ?? {};
  return flat({ data, immutable, metadata: { labels } });
}

function flat(value: unknown, path = ""): Record<string, unknown> {
  if (typeof value !== "object" || value === null) return value === undefined ? {} : { [path]: value };
  const below = Object.entries(value).map(([name, part]) => flat(part, path === "" ? name : `${path}.${name}`));
  return Object.assign({}, ...below) as Record<string, unknown>;
}

function same(was: LiveObject, is: LiveObject): boolean {
  return ownerUidOf(was) === ownerUidOf(is) && JSON.stringify(fieldsOf(was)) === JSON.stringify(fieldsOf(is));
}

/** The fields that the preview named are those that changed, from the same values to the same values. */
function expectFields(
  { operation, fields }: ResourcePlan,
  was: LiveObject | undefined,
  is: LiveObject | undefined,
): void {
  if (was === undefined || is === undefined || !["update", "adopt", "move"].includes(operation)) return;
  const side = (which: "before" | "after") =>
    Object.assign({}, ...fields.map((field: FieldChange) => flat(field[which], field.path))) as Record<string, unknown>;
  const [said, real] = [
    { from: side("before"), to: side("after") },
    { from: {}, to: {} } as Record<"from" | "to", Record<string, unknown>>,
  ];
  const [live, made] = [fieldsOf(was), fieldsOf(is)];
  for (const path of new Set([...Object.keys(live), ...Object.keys(made)])) {
    if (live[path] === made[path]) continue;
    const hidden = is.kind === "Secret" && path.startsWith("data");
    if (path in live) real.from[hidden ? "data.text" : path] = hidden ? "[secret]" : live[path];
    if (path in made) real.to[hidden ? "data.text" : path] = hidden ? "[secret]" : made[path];
  }
  expect(said).toEqual(real);
}
