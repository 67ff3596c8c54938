import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { isApiError } from "../../../providers/kubernetes/client";
import { findFieldDrift } from "../../../providers/kubernetes/field-differences";
import { withStoredData } from "../../../providers/kubernetes/object-types";
import type { Manifest } from "../../../providers/kubernetes/types";
import { TestCluster } from "./test-cluster";

/*
 * What the API server makes of built-in types is no difference: each of their fields is given empty, and each quantity in
 * other spellings, by the schemas that the API server itself has.
 */

const cluster = TestCluster.use();

/** A valid manifest of each type, without its name. The fields of Pods are tried once. */
const TYPES = parseAllDocuments(fs.readFileSync(path.join(__dirname, "built-in-types.yaml"), "utf8"))
  .map((document) => document.toJS() as { apiVersion: string; kind: string })
  .map((manifest) => [`${manifest.apiVersion}/${manifest.kind}`, manifest] as const);
const CLUSTERED = /^v1\/(Namespace|PersistentVolume)$|Class$|ClusterRole$|AdmissionPolicy$|Definition$/;

interface Schema {
  $ref?: string;
  allOf?: Schema[];
  type?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema;
  "x-kubernetes-group-version-kind"?: { group: string; version: string; kind: string }[];
}

interface OpenApi {
  components: { schemas: Record<string, Schema> };
}

const documents = new Map<string, Record<string, Schema>>();

async function schemasOf(apiVersion: string): Promise<Record<string, Schema>> {
  const known = documents.get(apiVersion);
  if (known !== undefined) return known;
  const path = apiVersion.includes("/") ? `apis/${apiVersion}` : `api/${apiVersion}`;
  const { components } = await cluster.client.json<OpenApi>("GET", `/openapi/v3/${path}`);
  documents.set(apiVersion, components.schemas);
  return components.schemas;
}

const QUANTITY = "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity";
const SPELLINGS: Record<string, unknown[]> = {
  "1": ["1000m", 1, "1.0", "1e0", "0.001k"],
  "100m": ["0.1", "0.10", 0.1, "1e-1", "100000u"],
  "500m": ["0.5", ".5"],
  "10": ["10000m", 10, "1e1"],
  "64Mi": ["65536Ki", "67108864", "0.0625Gi"],
  "1Gi": ["1024Mi", "1073741824", "1048576Ki"],
};
const EMPTY: Record<string, unknown> = { string: "", boolean: false, integer: 0, number: 0, array: [], object: {} };

/** Versions of a value in each of which one field is empty, or one quantity is written otherwise. */
function* variants(value: unknown, given: Schema, schemas: Record<string, Schema>): Generator<unknown> {
  const reference = given.$ref ?? given.allOf?.[0]?.$ref;
  if (reference === QUANTITY) return yield* SPELLINGS[String(value)] ?? [];
  const schema = reference === undefined ? given : (schemas[reference.split("/").at(-1) ?? ""] ?? {});
  if (Array.isArray(value)) {
    if (value.length > 1) yield [...value].reverse();
    for (const [index, item] of value.entries()) {
      for (const variant of variants(item, schema.items ?? {}, schemas)) yield value.with(index, variant);
    }
  } else if (typeof value === "object" && value !== null) {
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      if (name in value) continue;
      const type =
        property.type ?? schemas[(property.$ref ?? property.allOf?.[0]?.$ref)?.split("/").at(-1) ?? ""]?.type;
      for (const empty of [EMPTY[type ?? "object"], null]) yield { ...value, [name]: empty };
    }
    for (const [name, child] of Object.entries(value)) {
      const property = schema.properties?.[name] ?? schema.additionalProperties ?? {};
      for (const variant of variants(child, property, schemas)) yield { ...value, [name]: variant };
    }
  }
}

const seen = { accepted: 0, refused: 0 };

it.each(TYPES)(
  "the API server's own spelling of a %s is no difference",
  async (type, { apiVersion, kind, ...base }) => {
    const isDefinition = kind === "CustomResourceDefinition";
    const metadata = {
      name: isDefinition ? "things.example.com" : "a",
      ...(!CLUSTERED.test(type) && { namespace: cluster.namespace }),
    };
    const schemas = await schemasOf(apiVersion);
    const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
    const schema = Object.values(schemas).find((candidate) =>
      candidate["x-kubernetes-group-version-kind"]?.some(
        (named) => named.group === group && named.version === version && named.kind === kind,
      ),
    );
    if (schema === undefined) throw new Error(`there is no schema of ${type}`);
    const { metadata: _, apiVersion: __, kind: ___, status: ____, ...properties } = schema.properties ?? {};
    const different: unknown[] = [];
    let accepted = 0;
    for (const body of [base, ...variants(base, { properties }, schemas)]) {
      const manifest = withStoredData({ apiVersion, kind, metadata, ...(body as object) }) as Manifest;
      try {
        const { object } = await cluster.client.apply(manifest, { dryRun: true });
        accepted++;
        const drift = findFieldDrift(manifest, object);
        if (drift.length > 0) different.push({ drift, manifest });
      } catch (error) {
        if (!isApiError(error, 400, 403, 422, 500)) throw error;
        if (body === base) throw error;
        seen.refused++;
      }
    }
    seen.accepted += accepted;
    expect(different).toEqual([]);
    expect(accepted).toBeGreaterThan(0);
  },
);

it("most of what is tried is accepted", () => {
  expect(seen.accepted).toBeGreaterThan(500);
  expect(seen.accepted).toBeGreaterThan(seen.refused);
});
