import { readFileSync } from "node:fs";
import { secret } from "@pulumi/pulumi/output";
import { beforeAll, describe, expect, it } from "vitest";
import { DynamicResource } from "../../../providers/dynamic";
import { known, type Manifest } from "../../../providers/kubernetes/client";
import { KubernetesObject, OBJECT_STUB, provider } from "../../../providers/kubernetes/object";
import type { ObjectInputs } from "../../../providers/kubernetes/object-inputs";
import { MASKED } from "../../../providers/literal";
import type { UpResult } from "../../../src/automation/engine";
import { changedFields } from "../../../src/plan/fields";
import { TestEngine } from "../../automation/test-engine";
import { filesUnder } from "../../files";
import { acme } from "../../objects";
import { TestCluster } from "./test-cluster";

/* What is secret in a plain program is looked for in all that the engine writes and says. */

const cluster = TestCluster.use();
let engine: TestEngine;
beforeAll(async () => {
  engine = await TestEngine.open(undefined, {}, [[OBJECT_STUB, provider]]);
  return () => engine.close();
});

const SECRET = { apiVersion: "v1", kind: "Secret" };
const base64 = (text: string) => Buffer.from(text).toString("base64");
const secretOf = (name: string, fields: object, metadata = {}) => cluster.manifest(SECRET, name, fields, metadata);
const programOf = (manifest: object) => () =>
  void new KubernetesObject("it", { owner: acme, manifest: manifest as Manifest });
const up = (stack: string, manifest: object, options = {}) => engine.engine.up(stack, programOf(manifest), options);

/** Finds drift, and fails before it corrects it: so the state keeps what was found. */
async function findDrift(stack: string, manifest: Manifest): Promise<UpResult> {
  const metadata = { ...manifest.metadata, labels: { refused: "not a label" } };
  const result = await up(stack, { ...manifest, metadata }, { refresh: true });
  expect(result.summary.result).toBe("failed");
  expect((await engine.checkpoint(stack)).resources).toContainEqual(
    expect.objectContaining({ outputs: expect.objectContaining({ drift: expect.anything() }) }),
  );
  return result;
}

/** Where a text is, as it is or in base64, in what a stack has or an operation told. */
function found(text: string, told: unknown = ""): string[] {
  const has = (written: string) =>
    [text, base64(text).replace(/=+$/, "").slice(0, -1)].some((form) => written.includes(form));
  const files = filesUnder(engine.directory).filter((file) => has(readFileSync(file, "latin1")));
  return [...files, ...(has(JSON.stringify(told)) ? ["told"] : [])];
}

describe("the values of a Secret", () => {
  it("are nowhere but in the Secret, whatever becomes of it", async () => {
    const given = (value: string, labels = {}) =>
      secretOf("kept", { data: { one: base64(value) }, stringData: { two: value } }, { labels });
    const told: unknown[] = [await up("kept", given("canary-first"))];
    const before = secretOf("kept", {});
    const first = base64("canary-first");
    expect((await known(cluster.client.find(before)))?.data).toEqual({ one: first, two: first });
    told.push(await up("kept", given("canary-second")));
    await cluster.client.apply({ ...before, stringData: { one: "canary-drifted" } }, { fieldManager: "someone" });
    told.push(await findDrift("kept", given("canary-second")));
    told.push(await up("kept", given("canary-second"), { refresh: true }));
    expect((await known(cluster.client.find(before)))?.data).toMatchObject({ one: base64("canary-second") });
    const failed = await up("kept", given("canary-failed", { a: "not a label" }));
    expect(failed.summary.result).toBe("failed");
    told.push(failed);
    told.push(await engine.engine.exportStack("kept"), await engine.engine.history("kept"));
    for (const value of ["canary-first", "canary-second", "canary-drifted", "canary-failed"]) {
      expect(found(value, told), value).toEqual([]);
    }
    expect(JSON.stringify(told)).toContain("data.one");
  });

  it("are shown in a preview by the names of those that differ", async () => {
    const given = (one: string) => secretOf("previewed", { stringData: { one, two: "canary-same" } });
    await up("previewed", given("canary-old"));
    const planned = await engine.engine.preview("previewed", programOf(given("canary-new")));
    const masked = [{ path: "stringData.one", before: MASKED, after: MASKED }];
    expect(planned.changes.map((change) => [change.operation, changedFields(change)])).toEqual([["update", masked]]);
    for (const value of ["canary-old", "canary-new", "canary-same"]) expect(found(value, planned), value).toEqual([]);
  });

  it("that an earlier version has written as they are, are encrypted by the next update, which changes nothing", async () => {
    class Unsealed extends DynamicResource {
      constructor(name: string, inputs: ObjectInputs) {
        const outputs = { uid: undefined, resourceVersion: undefined, created: undefined, fields: undefined };
        super({ module: "kubernetes", name: "Secret", stub: OBJECT_STUB }, name, { ...inputs, ...outputs });
      }
    }
    const manifest = secretOf("upgraded", { stringData: { one: "canary-upgraded" } });
    await engine.engine.up("upgraded", () => void new Unsealed("it", { owner: acme, manifest }));
    const checkpoint = async () => JSON.stringify(await engine.checkpoint("upgraded"));
    expect(await checkpoint()).toContain("canary-upgraded");
    const { resourceVersion } = (await known(cluster.client.find(manifest)))?.metadata ?? {};

    const result = await up("upgraded", manifest);

    expect(result.summary).toMatchObject({ result: "succeeded", resourceChanges: {} });
    expect((await known(cluster.client.find(manifest)))?.metadata).toMatchObject({ resourceVersion });
    expect(await checkpoint()).not.toContain("canary-upgraded");
  });
});

it("what a program calls a secret is encrypted in any object, also when it drifts", async () => {
  const manifest = (value: unknown) => ({ ...cluster.configMap("other"), data: { key: value, plain: "seen" } });
  const told = [await up("other", manifest(secret("canary-given")))];
  expect((await cluster.find("other"))?.data).toEqual({ key: "canary-given", plain: "seen" });
  await cluster.edit("other", { data: { key: "canary-edited" } });
  told.push(await findDrift("other", manifest(secret("canary-given"))));
  expect(JSON.stringify(await engine.checkpoint("other"))).toContain("seen");
  for (const value of ["canary-given", "canary-edited"]) expect(found(value, told), value).toEqual([]);
});
