import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { known, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { useDirectory } from "../directories";
import { COMPILER_OPTIONS } from "./compiler-options";
import { conditionOf, removeUntilGone, untilGone, untilReady } from "./conditions";
import { namespace, uniqueName } from "./manifests";
import { client, create, find, get, remove } from "./objects";
import { useOperator } from "./operator";

/*
 * A kind that makes objects of a custom type, while versions of that type are withdrawn and its CRD is deleted; and one that makes
 * objects in another namespace.
 */

const directory = useDirectory();
const kinds = path.join(directory, "notice");
const [group, parts] = [`${uniqueName("notices")}.example.com`, `${uniqueName("parts")}.example.com`];
const CRD = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" };
const NOTICE = { apiVersion: `${group}/v1`, kind: "Notice" };
const V1 = { apiVersion: `${parts}/v1`, kind: "Widget" };
const OLD = { apiVersion: `${parts}/v1alpha1`, kind: "Widget" };

const MODULE = `import { controllerReference, defineKind, Type } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
const optional = () => Type.Optional(Type.String());
export const notice = defineKind({
  group: ${JSON.stringify(group)}, version: "v1", kind: "Notice", plural: "notices", singular: "notice", scope: "Namespaced",
  description: "", columns: [], directory: __dirname,
  spec: Type.Object({ text: Type.String(), widget: Type.Optional(Type.Boolean()), shared: optional(), owned: Type.Optional(Type.Boolean()) }),
  status: Type.Object({ configMap: optional() }),
  owns: [{ apiVersion: "v1", kind: "ConfigMap" }, ${JSON.stringify(OLD)}],
  program(object, { owner }) {
    const { metadata, spec } = object;
    const namespace = spec.shared ?? metadata.namespace ?? "";
    const ownerReferences = spec.owned ? { ownerReferences: [controllerReference(object)] } : {};
    new KubernetesObject("text", {
      owner,
      manifest: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: metadata.name, namespace, ...ownerReferences }, data: { text: spec.text } },
    });
    if (!spec.widget) return;
    const widget = { ...${JSON.stringify(OLD)}, metadata: { name: metadata.name, namespace }, spec: { size: 1 } };
    new KubernetesObject("widget", { owner, manifest: widget });
  },
  report: (_, owned) => {
    const found = owned.find(({ kind }) => kind === "ConfigMap")?.metadata;
    return found === undefined ? {} : { configMap: found.namespace + "/" + found.name };
  },
});
`;

beforeAll(async () => {
  fs.symlinkSync(path.resolve(__dirname, "../../node_modules"), path.join(directory, "node_modules"));
  fs.mkdirSync(kinds);
  fs.writeFileSync(path.join(kinds, "tsconfig.json"), JSON.stringify({ compilerOptions: COMPILER_OPTIONS }));
  fs.writeFileSync(path.join(kinds, "index.ts"), MODULE);
  await serve("v1", "v1alpha1");
});
const operator = useOperator({ args: ["--kinds", kinds, "--drift-interval", "1"] });
beforeEach(() => serve("v1", "v1alpha1"));
afterAll(async () => {
  await serve("v1", "v1alpha1");
  for (const { metadata } of (await client.list(NOTICE)).items) {
    await removeUntilGone({ ...NOTICE, metadata });
  }
  for (const name of [`notices.${group}`, `widgets.${parts}`]) await client.delete(CRD, name);
});

/** Serves these versions of the Widgets alone, from when the API server does. */
async function serve(...versions: string[]): Promise<void> {
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  const names = { kind: "Widget", listKind: "WidgetList", plural: "widgets", singular: "widget" };
  await client.apply({
    ...CRD,
    metadata: { name: `widgets.${parts}` },
    spec: {
      group: parts,
      scope: "Namespaced",
      names,
      versions: ["v1alpha1", "v1"].map((name) => {
        return { name, served: versions.includes(name), storage: name === "v1", schema };
      }),
    },
  });
  await eventually(async () => {
    type Groups = { groups: { name: string; versions: { version: string }[] }[] };
    const { groups } = await client.json<Groups>("GET", "/apis");
    const served = groups.find(({ name }) => name === parts)?.versions.map(({ version }) => version) ?? [];
    expect(served.sort()).toEqual([...versions].sort());
    for (const version of ["v1", "v1alpha1"]) {
      const answer = client.json("GET", `/apis/${parts}/${version}/widgets`).then(
        () => true,
        () => false,
      );
      expect(await answer).toBe(versions.includes(version));
    }
  });
}

const notice = (name: string, spec: object): Manifest => ({
  ...NOTICE,
  metadata: { name, namespace: "default" },
  spec: { text: "hello", ...spec },
});
const widgetOf = ({ metadata }: Manifest) => known(client.get(V1, metadata.name ?? "", metadata.namespace));
const conditionsOf = (object: LiveObject, ...types: string[]) =>
  types.map((type) => {
    const { status, reason } = findCondition(statusOf(object).conditions, type) ?? {};
    return status && `${status} ${reason}`;
  });

async function made(spec: object = { widget: true }): Promise<Manifest> {
  const manifest = notice(uniqueName("notice"), spec);
  await create(manifest);
  await untilReady(manifest);
  return manifest;
}

describe("an object whose resource is of a type that the API server stops serving", () => {
  it("says so until the type is served again", async () => {
    const other = await made({});
    const object = await made();
    await serve("v1");
    await eventually(async () => {
      const states = conditionsOf(await get(object), "Synced", "DriftUnknown", "Ready");
      expect(states).toEqual(["True Succeeded", "True UnknownKind", "Unknown UnknownKind"]);
    });
    expect(conditionsOf(await get(other), "DriftUnknown", "Ready")).toEqual([undefined, "True Succeeded"]);

    await serve("v1", "v1alpha1");
    await eventually(async () => {
      expect(conditionsOf(await get(object), "DriftUnknown", "Ready")).toEqual([undefined, "True Succeeded"]);
    });
  });

  it("says so after a restart of the operator as well, and keeps what it made", async () => {
    const object = await made();
    await serve("v1");
    await operator.restart();
    await eventually(async () => {
      const states = conditionsOf(await get(object), "DriftUnknown", "Ready");
      expect(states).toEqual(["True UnknownKind", "Unknown UnknownKind"]);
    });
    expect(conditionOf(await get(object), "Ready").message).toContain(`does not serve Widget in ${parts}/v1alpha1`);
    await client.mergePatch(NOTICE, object.metadata.name ?? "", "default", { spec: { text: "changed" } });
    await eventually(async () =>
      expect((await get({ ...object, kind: "ConfigMap", apiVersion: "v1" })).data).toEqual({ text: "changed" }),
    );
    expect(await widgetOf(object)).toHaveProperty("metadata.uid");

    await serve("v1", "v1alpha1");
    await eventually(async () => {
      expect(conditionsOf(await get(object), "DriftUnknown", "Ready")).toEqual([undefined, "True Succeeded"]);
    });
    await client.delete(V1, object.metadata.name ?? "", "default");
    await eventually(async () => expect(await widgetOf(object)).toHaveProperty("metadata.uid"));
  });

  it("is deleted with it, in the version that is served", async () => {
    const object = await made();
    await serve("v1");
    await removeUntilGone(object);
    expect(await widgetOf(object)).toBeUndefined();
  });

  it("waits with its deletion while no version is served, and then deletes it", async () => {
    const object = await made();
    await serve();
    await remove(object);
    const message = await eventually(async () => {
      const { reason, message } = conditionOf(await get(object), "Synced");
      expect(reason).toBe("DeletionFailed");
      return message;
    });
    expect(message).toMatch("UnknownKind");
    expect(message).toContain(`its CRD widgets.${parts} exists and serves no version: set served to true`);

    await serve("v1", "v1alpha1");
    await untilGone(object);
    expect(await widgetOf(object)).toBeUndefined();
  });

  it("is deleted without it when the CRD was deleted with all its objects", async () => {
    const object = await made();
    await client.delete(CRD, `widgets.${parts}`);
    await eventually(async () => expect(await known(client.get(CRD, `widgets.${parts}`))).toBeUndefined());
    await removeUntilGone(object);
  });
});

describe("an object whose resource is in another namespace", () => {
  it("is Ready with it, reports it, repairs it and removes it", async () => {
    const shared = uniqueName("shared");
    await create(namespace(shared));
    const object = await made({ shared });
    const name = object.metadata.name ?? "";
    const configMap = { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: shared } };
    await eventually(async () => expect((await get(object)).status).toMatchObject({ configMap: `${shared}/${name}` }));
    const { uid } = (await get(configMap)).metadata;
    await remove(configMap);
    await eventually(async () => {
      const again = await find(configMap);
      expect(again?.metadata.uid ?? uid).not.toBe(uid);
    });
    await removeUntilGone(object);
    expect(await find(configMap)).toBeUndefined();
    await remove(namespace(shared));
  });

  it("is refused when that refers to the object as its owner", async () => {
    const object = notice(uniqueName("notice"), { shared: "kube-public", owned: true });
    await create(object);
    await eventually(async () => {
      expect(conditionOf(await get(object), "Stalled")).toMatchObject({
        reason: "InvalidProgram",
        message: expect.stringContaining("has an owner reference to Notice."),
      });
    });
    const metadata = { name: object.metadata.name ?? "", namespace: "kube-public" };
    expect(await find({ apiVersion: "v1", kind: "ConfigMap", metadata })).toBeUndefined();
  });
});
