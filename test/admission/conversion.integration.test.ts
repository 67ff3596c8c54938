import { pino } from "pino";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { known, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { startAdmission } from "../../src/admission/admission";
import type { Listener } from "../../src/http/server";
import { installKinds } from "../../src/operator/install";
import { eventually } from "../../src/testing/eventually";
import { customResourceDefinition, DEFINITION_TYPE } from "../../stacks/contract/crd";
import { Type } from "../../stacks/contract/index";
import { type AnyKind, defineKind } from "../../stacks/contract/kind";
import { type Convertible, servedVersion } from "../../stacks/contract/served-version";
import { GADGET } from "../operator/gadget";
import { TestCluster } from "../providers/kubernetes/test-cluster";

/* A kind with two versions of its API, served to the real API server by the admission server. */

const GROUP = "versions.kindstack.dev";
const TIER = `${GROUP}/tier`;
const v1Spec = Type.Object({ image: Type.String(), replicas: Type.Integer({ minimum: 0, maximum: 9, default: 1 }) });
const v2Spec = Type.Object({
  container: Type.Object({ image: Type.String() }),
  replicas: Type.Integer({ minimum: 0, maximum: 9, default: 1 }),
  tier: Type.Optional(Type.String({ maxLength: 6 })),
});
const names = { group: GROUP, kind: "Fleet", plural: "fleets", singular: "fleet", scope: "Namespaced" } as const;
const rest = { ...GADGET, ...names, owns: [] };
const scale = { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" };
const onlyV1 = defineKind({ ...rest, version: "v1", spec: v1Spec });
const fleet = defineKind({
  ...rest,
  version: "v2",
  spec: v2Spec,
  capabilities: {
    scale,
    rules: [
      { rule: "size(self.metadata.name) <= 8", message: "the name is too long" },
      {
        rule: "!has(self.spec.tier) || self.spec.tier == 'gold' || self.spec.replicas <= 5",
        message: "gold is for more",
      },
      {
        rule: "self.spec.container.image.startsWith('new') || !oldSelf.spec.container.image.startsWith('new')",
        message: "no way back",
      },
      { rule: "!self.spec.container.image.startsWith('url') || isURL(self.spec.container.image)", message: "no URL" },
    ],
    versions: [
      servedVersion({
        version: "v1",
        spec: v1Spec,
        deprecationWarning: "use v2",
        scale,
        toStored: ({ spec: { image, replicas }, annotations: { [TIER]: tier, ...annotations } }) => {
          if (image === "cannot-be-converted") throw new Error("spec.image: it has no registry");
          return { spec: { container: { image }, replicas, ...(tier !== undefined && { tier }) }, annotations };
        },
        fromStored: ({ spec, annotations }: Convertible<Type.Static<typeof v2Spec>>) => ({
          spec: { image: spec.container.image, replicas: spec.replicas },
          annotations: { ...annotations, ...(spec.tier !== undefined && { [TIER]: spec.tier }) },
        }),
      }),
    ],
  },
});

const cluster = TestCluster.use();
let admission: Listener | undefined;
const DEFINITION = `fleets.${GROUP}`;
const DEFINITION_PATH = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${DEFINITION}`;

afterAll(() => cluster.client.delete(DEFINITION_TYPE, DEFINITION));
afterEach(() => admission?.close());

/** Serves conversion as a replica does that starts. */
async function serve(): Promise<void> {
  admission = await startAdmission({
    kinds: [fleet as AnyKind],
    client: cluster.client,
    logger: pino({ level: "silent" }),
    port: 0,
    host: "127.0.0.1",
    namespace: cluster.namespace,
  });
  await untilServed("v1");
}

const pathOf = (version: string, name = "") =>
  `/apis/${GROUP}/${version}/namespaces/${cluster.namespace}/fleets${name === "" ? "" : `/${name}`}`;

/** The API server takes a CRD in use a moment after it was applied. */
function untilServed(version: string): Promise<unknown> {
  return eventually(() => cluster.client.json("GET", pathOf(version)));
}

const definition = () => known(cluster.client.get(DEFINITION_TYPE, DEFINITION));
const MERGE = { contentType: "application/merge-patch+json" };

/** As `kubectl apply --server-side` does it: without force, so that a field of another manager is a conflict. */
function applyAsKubectl(body: Manifest): Promise<LiveObject> {
  const query = { fieldManager: "kubectl" };
  return cluster.client.json("PATCH", DEFINITION_PATH, { body, query, contentType: "application/apply-patch+yaml" });
}

/** Reads an object in both versions, again and again. */
class Reads {
  readonly failures: string[] = [];
  #count = 0;
  readonly #stop = new AbortController();

  constructor(name: string) {
    void this.#run(name);
  }

  async #run(name: string): Promise<void> {
    while (!this.#stop.signal.aborted) {
      for (const version of ["v1", "v2"]) {
        await read(version, name).catch((error: Error) => this.failures.push(`${version}: ${error.message}`));
      }
      this.#count++;
    }
  }

  /** Until both versions were read some times more. */
  async more(): Promise<void> {
    const enough = this.#count + 10;
    await eventually(() => expect(this.#count).toBeGreaterThanOrEqual(enough));
  }

  [Symbol.dispose](): void {
    this.#stop.abort();
  }
}

const manifestOf = (version: string, name: string, spec: object, annotations?: Record<string, string>): Manifest => ({
  apiVersion: `${GROUP}/${version}`,
  kind: "Fleet",
  metadata: { name, namespace: cluster.namespace, ...(annotations && { annotations }) },
  spec,
});
const create = (...[version, name, spec, annotations]: Parameters<typeof manifestOf>) =>
  cluster.client.json<LiveObject>("POST", pathOf(version), { body: manifestOf(version, name, spec, annotations) });
const read = (version: string, name: string) => cluster.client.json<LiveObject>("GET", pathOf(version, name));

describe("a kind with several versions", () => {
  it("keeps objects of the version that was stored before, serves both, and converts between them", async () => {
    await installKinds(cluster.client, [onlyV1]);
    await untilServed("v1");
    await create("v1", "old", { image: "memcached:1", replicas: 2 });
    await create("v1", "from-earlier", { image: "a" });

    // Without an operator that converts, what the stored version has no field for would be lost.
    await installKinds(cluster.client, [fleet]);
    await eventually(async () => {
      const body = manifestOf("v1", "early", { image: "memcached:1" });
      const created = cluster.client.json("POST", pathOf("v1"), { body, query: { dryRun: "All" } });
      await expect(created).rejects.toThrow(
        /no operator converts Fleet yet: use versions.kindstack.dev\/v2, or start the operator with admission/,
      );
    });
    await serve();

    const expected = { container: { image: "memcached:1" }, replicas: 2 };
    await eventually(async () => expect(await read("v2", "old")).toMatchObject({ spec: expected }));
    expect((await read("v1", "old")).spec).toEqual({ image: "memcached:1", replicas: 2 });

    await create("v2", "new", { container: { image: "memcached:2" }, tier: "gold" });
    const asV1 = await read("v1", "new");
    expect(asV1).toMatchObject({ apiVersion: `${GROUP}/v1`, spec: { image: "memcached:2", replicas: 1 } });
    expect(asV1.metadata.annotations).toMatchObject({ [TIER]: "gold" });

    // What v1 has no field for survives a change by a client of v1.
    const body = { ...asV1, spec: { image: "memcached:3", replicas: 5 } };
    await cluster.client.json("PUT", pathOf("v1", "new"), { body });
    const asV2 = await read("v2", "new");
    expect(asV2.spec).toEqual({ container: { image: "memcached:3" }, replicas: 5, tier: "gold" });
    expect(asV2.metadata.annotations ?? {}).not.toHaveProperty([TIER]);

    const { items } = await cluster.client.json<{ items: LiveObject[] }>("GET", pathOf("v1"));
    const inV1 = ["from-earlier", "new", "old"].map((name) => [name, `${GROUP}/v1`]);
    expect(items.map(({ metadata, apiVersion }) => [metadata.name, apiVersion]).sort()).toEqual(inV1);
  });

  it("refuses what its version's schema refuses, and names what cannot be converted", async () => {
    await installKinds(cluster.client, [fleet]);
    await serve();
    await expect(create("v1", "many", { image: "a", replicas: 10 })).rejects.toThrow(/spec.replicas/);
    const unconvertible = create("v1", "no", { image: "cannot-be-converted" });
    await expect(unconvertible).rejects.toThrow(/spec.image: it has no registry/);
  });

  it("refuses in the other version what the stored one refuses, by its schema and by any rule", async () => {
    await installKinds(cluster.client, [fleet]);
    await serve();
    const tier = (value: string) => ({ [TIER]: value });
    // The API server takes a webhook a moment after it was applied.
    let tries = 0;
    await eventually(() =>
      expect(create("v1", `longname-${tries++}`, { image: "a" })).rejects.toThrow("the name is too long"),
    );
    await expect(create("v1", "tall", { image: "a" }, tier("platinum"))).rejects.toThrow(/spec.tier/);
    await expect(create("v1", "many", { image: "a", replicas: 6 }, tier("tin"))).rejects.toThrow("gold is for more");
    await expect(create("v1", "url", { image: "url" })).rejects.toThrow("no URL");
    await create("v1", "fine", { image: "new", replicas: 5 }, tier("tin"));
    await expect(create("v1", "fine", { image: "new" })).rejects.toThrow("already exists");

    const change = (body: object, path = "") =>
      cluster.client.json<LiveObject>("PATCH", pathOf("v1", "fine") + path, { body, ...MERGE });
    await expect(change({ spec: { replicas: 6 } })).rejects.toThrow("gold is for more");
    await expect(change({ spec: { replicas: 7 } }, "/scale")).rejects.toThrow("gold is for more");
    await expect(change({ spec: { image: "old" } })).rejects.toThrow("no way back");
    expect((await change({ spec: { replicas: 4 } })).spec).toMatchObject({ replicas: 4 });
    await change({ spec: { replicas: 3 } }, "/scale");
    expect((await read("v2", "fine")).spec).toMatchObject({ container: { image: "new" }, replicas: 3, tier: "tin" });
  });

  it("lets an object that a stricter version refuses change in its metadata, and end", async () => {
    await installKinds(cluster.client, [fleet]);
    await serve();
    const change = (body: object) =>
      cluster.client.json<LiveObject>("PATCH", pathOf("v1", "from-earlier"), { body, ...MERGE });
    // The API server takes the webhook's new address a moment later.
    await eventually(() => change({ metadata: { labels: { a: "a" } } }));
    await change({ metadata: { labels: { a: "b" }, finalizers: ["test.kindstack.dev/held"] } });
    await cluster.client.delete(manifestOf("v1", "from-earlier", {}), "from-earlier", cluster.namespace);
    await change({ metadata: { finalizers: [] } });
    await expect(read("v1", "from-earlier")).rejects.toThrow("not found");
  });

  it("stays served when the definition is applied again, and moves what is stored to the new version", async () => {
    await installKinds(cluster.client, [fleet]);
    await serve();
    await installKinds(cluster.client, [fleet]);
    expect((await read("v1", "old")).spec).toEqual({ image: "memcached:1", replicas: 2 });

    // As docs/versions.md has it: each object is written once, then the old version is taken out of the status.
    for (const name of ["old", "new"]) {
      const object = await read("v2", name);
      await cluster.client.json("PUT", pathOf("v2", name), { body: object });
    }
    const status = { storedVersions: ["v2"] };
    await cluster.client.json("PATCH", `${DEFINITION_PATH}/status`, { body: { status }, ...MERGE });
    expect(await definition()).toMatchObject({ status });
    await admission?.close();
    admission = undefined;
    expect((await read("v2", "old")).spec).toMatchObject({ container: { image: "memcached:1" } });
  });

  it("stays served, unchanged and without a conflict, when an installation applies the definition beside the operator", async () => {
    await serve(); // objects that are deleted with the CRD are converted
    await cluster.client.delete(DEFINITION_TYPE, DEFINITION);
    await eventually(async () => expect(await definition()).toBeUndefined());
    const served = customResourceDefinition(fleet as AnyKind);
    await applyAsKubectl(served);
    await untilServed("v2");
    await admission?.close();
    await serve();
    await eventually(() => create("v2", "watched", { container: { image: "memcached:1" } }));
    await eventually(async () => expect((await read("v1", "watched")).spec).toMatchObject({ image: "memcached:1" }));
    using reads = new Reads("watched");
    await reads.more();

    const before = await applyAsKubectl(served);
    expect(await applyAsKubectl(served)).toEqual(before);
    await reads.more();
    const { versions, ...spec } = served.spec as { versions: { name: string }[] };
    const deprecationWarning = "use v2 instead";
    const upgraded = versions.map((version) => (version.name === "v1" ? { ...version, deprecationWarning } : version));
    for (const applied of [{ ...served, spec: { ...spec, versions: upgraded } }, served]) {
      await applyAsKubectl(applied);
      await reads.more();
    }
    expect(reads.failures).toEqual([]);
  });
});
