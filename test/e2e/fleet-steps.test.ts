import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { known, type ResourceType } from "../../providers/kubernetes/client";
import type { Declarations } from "../../src/fleet/artefact";
import type { Report } from "../../src/preview/report";
import { useDirectory } from "../directories";
import { CONFIG_MAP, uniqueName } from "./manifests";
import { applySynced, removeKind } from "./notes";
import { client } from "./objects";
import { kindstack, useOperator } from "./operator";
import { makeAccount, previewsAt, usePreviewCertificate, writeKubeconfig } from "./previewer";

/*
 * What a program that is yet to be rolled out would do to every live object, in three steps: who may read the objects runs the
 * installed code alone, and who runs the new code has no credential. The operator previews what that one declares.
 */

const ROOT = path.resolve(__dirname, "../..");
const directory = useDirectory();
const at = (name: string) => path.join(directory, name);
const [rolledOut, branch] = [at("main"), at("branch")];
const group = `${uniqueName("steps")}.example.com`;
const NOTE: ResourceType = { apiVersion: `${group}/v1`, kind: "Note", plural: "notes", namespaced: true };
const namespace = uniqueName("steps");
const SECRET_VALUE = "hunter2-of-the-cluster";

/** @param definition of the version, the schema, the capabilities and the program */
function write(folder: string, definition: string): void {
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(
    path.join(folder, "index.ts"),
    `import { defineKind, Type } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
const names = { group: ${JSON.stringify(group)}, version: "v1", kind: "Note", plural: "notes", singular: "note" } as const;
const owns = [{ apiVersion: "v1", kind: "ConfigMap" }, { apiVersion: "v1", kind: "Secret" }];
const rest = { ...names, scope: "Namespaced", description: "", status: Type.Object({}), columns: [], directory: __dirname, report: () => ({}) } as const;
const make = (kind: string, { namespace }: any, owner: any, name: string, data: object) =>
  new KubernetesObject(name, { owner, manifest: { apiVersion: "v1", kind, metadata: { name, namespace }, ...data } });
const text = { text: Type.String() };
const reads = (kind: string, name: string) => ({ apiVersion: "v1", kind, name: () => name });
export const note = defineKind({ ...rest, ${definition} });
`,
  );
}

/** @param body more of the program @param edition of what each object gets */
const program = (edition: string, body = "") => `program({ metadata, spec }, { owner, read }: any) {
  ${body}
  const settings = read("settings");
  make("ConfigMap", metadata, owner, metadata.name, { data: { text: spec.text, edition: "${edition}", from: settings?.data.from ?? "" } });
  if (spec.text === "secret") make("Secret", metadata, owner, metadata.name + "-secret", { stringData: { password: "of " + metadata.name } });
}`;
const kind = (edition: string, body = "", { spec = "Type.Object(text)", more = "" } = {}) =>
  `owns, spec: ${spec}, capabilities: { reads: { settings: reads("ConfigMap", "settings"), ${more} } }, ${program(edition, body)}`;

write(rolledOut, kind("first"));
fs.symlinkSync(path.join(ROOT, "node_modules"), at("node_modules"));
const access = { kubeconfig: at("kubeconfig"), token: at("token") };
const previews = usePreviewCertificate(directory);
const operator = useOperator({ args: ["--kinds", rolledOut, ...previews.args] });
let server = "";

const READER = [
  { apiGroups: ["kindstack.dev"], resources: ["previews"], verbs: ["create"] },
  { apiGroups: [group], resources: ["notes"], verbs: ["get", "list"] },
  { apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["get"] },
  { apiGroups: [""], resources: ["configmaps"], verbs: ["get"] },
];

const specs = { one: "short", two: "short", broken: "throw", long: "a long text", kept: "secret" };
beforeAll(async () => {
  server = previewsAt(operator);
  await client.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  await client.apply({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "settings", namespace },
    data: { from: "live" },
  });
  await client.apply({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "theirs", namespace },
    stringData: { password: SECRET_VALUE },
  });
  const token = await makeAccount(namespace, "previewer", READER);
  fs.writeFileSync(access.token, token);
  writeKubeconfig(access.kubeconfig, token);
  const texts = Object.entries(specs).map(([name, text]) => [name, { text }]);
  await applySynced(NOTE, namespace, Object.fromEntries(texts));
});
beforeEach(() => fs.rmSync(branch, { recursive: true, force: true }));
afterAll(async () => {
  await removeKind(NOTE, namespace);
  await client.delete({ apiVersion: "v1", kind: "Namespace" }, namespace);
});

const NO_CLUSTER = { KUBECONFIG: at("none"), HOME: directory };
const [FLEET, DECLARED] = [at("fleet.json"), at("declared.json")];

function fetchFleet(): string {
  const kubeconfig = { KUBECONFIG: access.kubeconfig };
  return kindstack(["fleet", "fetch", "--kinds", rolledOut, "-n", namespace, "--to", FLEET], kubeconfig);
}

function runBranch(): Declarations {
  kindstack(["fleet", "run", FLEET, "--kinds", branch, "--to", DECLARED], NO_CLUSTER);
  return JSON.parse(fs.readFileSync(DECLARED, "utf8")) as Declarations;
}

/** What the command prints, and whether it passes. @param where by default, the operator with a token */
function submit(words: string[] = [], where: string[] = [], env: Record<string, string> = NO_CLUSTER) {
  const asked = ["--server", server, "--server-ca", previews.ca, "--token-file", access.token];
  try {
    return {
      text: kindstack(["fleet", "submit", FLEET, DECLARED, ...(where.length > 0 ? where : asked), ...words], env),
      passes: true,
    };
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    return { text: `${stdout}${stderr}`, passes: false };
  }
}

function reported(where?: string[], env?: Record<string, string>): Report {
  const file = at("report.json");
  submit(["--report", file], where, env);
  return JSON.parse(fs.readFileSync(file, "utf8")) as Report;
}
const planOf = ({ objects }: Report, name: string) => objects.find((one) => one.name === name);
const local = () => ["--kinds", rolledOut];
const atHand = () => ({ PULUMI_BACKEND_URL: `file://${operator.stateDirectory}` });

describe("a changed program in three steps", () => {
  it("is told of as in one step, by a job without a credential for its code", () => {
    write(
      branch,
      kind("second", `if (spec.text === "throw") throw new Error("no such text");`, {
        spec: "Type.Object({ text: Type.String({ maxLength: 6 }) })",
      }),
    );
    expect(fetchFleet()).toContain("5 objects of 1 kind");
    runBranch();
    const byOperator = reported();
    const direct = reported(local(), atHand());
    const file = at("whole.json");
    try {
      kindstack(["preview", "--fleet", "--kinds", branch, "-n", namespace, "--report", file], atHand());
    } catch {} // some objects would fail
    const whole = JSON.parse(fs.readFileSync(file, "utf8")) as Report;
    for (const report of [byOperator, direct]) {
      for (const name of ["one", "two", "broken", "long"]) {
        const { action, resources, errors } = planOf(whole, name) ?? {};
        const changes = resources?.map(({ operation, fields }) => ({ operation, fields }));
        expect(planOf(report, name)).toMatchObject({ action, errors });
        expect(planOf(report, name)?.resources.map(({ operation, fields }) => ({ operation, fields }))).toEqual(
          changes,
        );
      }
      expect(report.differences?.map(({ action, objects }) => [action, objects])).toContainEqual([
        "update",
        [`${namespace}/one`, `${namespace}/two`],
      ]);
      expect(report.notes.join()).toContain("no proof");
    }
  });

  it("tells no secret: neither of the cluster's in a file, nor whether one that is declared differs", () => {
    const more = `secret: reads("Secret", "theirs")`;
    write(branch, kind("first", `if (spec.text === "short") read("secret");`, { more }));
    write(at("with-secret"), kind("first", "", { more }));
    kindstack(["fleet", "fetch", "--kinds", at("with-secret"), "-n", namespace, "--to", FLEET]);
    const declared = JSON.stringify(runBranch());
    for (const text of [fs.readFileSync(FLEET, "utf8"), declared]) {
      expect(text).not.toContain(SECRET_VALUE);
      expect(text).not.toContain(Buffer.from(SECRET_VALUE).toString("base64"));
      expect(text).not.toContain("of kept");
    }
    const report = reported();
    expect(planOf(report, "one")).toMatchObject({
      action: "unchecked",
      errors: ["its program reads a Secret, whose values are not fetched"],
    });
    expect(planOf(report, "kept")).toMatchObject({
      action: "unchecked",
      resources: [
        { type: "Secret", operation: "unchecked", fields: [], notChecked: expect.stringContaining("secrets") },
      ],
    });
    expect(submit(["--fail-on", "delete"]).passes).toBe(false);
  });

  it("says what a program reads that was not fetched, and what it declares otherwise each time", () => {
    write(
      branch,
      kind(
        "first",
        `if (spec.text === "short") make("ConfigMap", metadata, owner, metadata.name + "-more", { data: { at: String(Math.random()) } });`,
      ),
    );
    fetchFleet();
    expect(runBranch().objects.find(({ name }) => name === "one")?.outcome).toEqual({
      type: "unchecked",
      message: expect.stringMatching(/declares something else each time it runs: .*data\.at/),
    });
    write(branch, kind("first", "", { more: `other: reads("ConfigMap", "other")` }));
    const { outcome } = runBranch().objects[0] ?? {};
    expect(outcome).toMatchObject({
      type: "unchecked",
      message: expect.stringContaining("other: it is not in the file"),
    });
  });

  it("names a type that the installed kind does not own, and previews the rest", () => {
    const service = `make("Service", metadata, owner, metadata.name, { spec: { ports: [{ port: 80 }] } });`;
    const owns = `owns: [...owns, { apiVersion: "v1", kind: "Service" }]`;
    write(branch, kind("second", service).replace("owns,", `${owns},`));
    fetchFleet();
    runBranch();
    const plan = planOf(reported(), "one");
    expect(plan).toMatchObject({
      action: "unchecked",
      resources: [{ type: "ConfigMap", operation: "update" }],
      errors: ['not previewed: "one" is a Service of v1, which the installed Note does not own'],
    });
  });

  it("leaves everything in the cluster as it was", async () => {
    expect((await known(client.get(CONFIG_MAP, "one", namespace)))?.data).toMatchObject({ edition: "first" });
  });
});
