import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import type { Report } from "../../src/preview/report";
import { statusOf } from "../../stacks/contract/kind";
import { MODE_ANNOTATION } from "../../stacks/contract/mode";
import { controlPlane } from "../control-plane";
import { useDatabase } from "../providers/postgres/database";
import { untilSynced } from "./conditions";
import { sampleFile } from "./manifests";
import { apply, edit, eventsAbout } from "./objects";
import { kindstack, useOperator } from "./operator";

/* A preview gives the digests of the operator for each kind, whatever its program reads and its provider observes. */

const database = useDatabase();
beforeAll(() => database.query("CREATE TABLE students (id text PRIMARY KEY, name text, age integer, country text)"));
const operator = useOperator({ env: { PSQL_DBNAME: database.name } });

/** Each sample, and how it is changed. */
const CHANGES: Readonly<Record<string, object>> = {
  "capsule-tenant": { owner: { kind: "User", name: "bob" } },
  memcached: { size: 2 },
  podset: { replicas: 3 },
  "postgres-writer": { age: 24 },
  tenant: { adminEmail: "other@yourdomain.com" },
};
const samples = Object.keys(CHANGES).map((folder): Manifest => {
  const { manifest } = sampleFile(folder);
  const isNamespaced = manifest.kind !== "Tenant";
  const metadata = { ...manifest.metadata, annotations: { [MODE_ANNOTATION]: "Propose" } };
  return { ...manifest, metadata: isNamespaced ? { namespace: "default", ...metadata } : metadata };
});
beforeAll(async () => {
  // The names of its Pods are of its UID: only what changes afterwards can be told beforehand.
  const { manifest } = sampleFile("podset");
  await apply(manifest);
  await untilSynced(manifest);
});
afterAll(async () => {
  for (const sample of samples) await edit(sample, { metadata: { annotations: { [MODE_ANNOTATION]: null } } });
});

/** Approves what a preview tells of these objects, and then applies them. */
async function review(manifests: readonly Manifest[]): Promise<Report["objects"]> {
  const [files, report] = ["files", "report.json"].map((part) => path.join(operator.directory, part)) as [
    string,
    string,
  ];
  fs.mkdirSync(files, { recursive: true });
  for (const [index, manifest] of manifests.entries()) {
    fs.writeFileSync(path.join(files, `${index}.json`), JSON.stringify(manifest));
  }
  kindstack(["preview", "-f", files, "--propose", "--report", report, "-n", "default"], {
    ...controlPlane().env,
    PULUMI_BACKEND_URL: `file://${operator.stateDirectory}`,
    PSQL_DBNAME: database.name,
  });
  kindstack(["approve", "--report", report, "--operator-namespace", "default"]);
  for (const manifest of manifests) await apply(manifest);
  return (JSON.parse(fs.readFileSync(report, "utf8")) as Report).objects;
}

it("samples of all kinds are created and changed without waiting, as the preview of each has told", async () => {
  const changed = samples.map((sample, index) => ({
    ...sample,
    spec: { ...(sample.spec as object), ...Object.values(CHANGES)[index] },
  }));
  for (const manifests of [samples, changed]) {
    const told = await review(manifests);
    expect(told).toHaveLength(samples.length);
    for (const manifest of manifests) {
      const object = await untilSynced(manifest);
      const plan = told.find(({ apiVersion, kind, name }) => {
        return apiVersion === manifest.apiVersion && kind === manifest.kind && name === manifest.metadata.name;
      });
      expect(plan?.errors).toEqual([]);
      if (plan?.action !== "none") expect(statusOf(object).stack?.approval?.digest).toBe(plan?.digest);
      expect((await eventsAbout(object)).map(({ reason }) => reason)).not.toContain("WaitsForApproval");
    }
    expect(told.filter(({ digest }) => digest !== undefined).length).toBeGreaterThan(3);
  }
});
