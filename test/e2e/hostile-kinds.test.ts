import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { known, type ResourceType } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { COMPILER_OPTIONS } from "./compiler-options";
import { CONFIG_MAP, client, uniqueName } from "./objects";
import { useOperator } from "./operator";

/*
 * A kind whose program does what a mistake does: no object of it may end the operator, hold its workers, or keep others from
 * their updates. Two of them run the same code: as a plain program, and in the SDK's own runtime.
 */

const ROOT = path.resolve(__dirname, "../..");
const directory = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-hostile-"));
const group = `${uniqueName("hostile")}.example.com`;
const typeOf = (kind: string): ResourceType => ({
  apiVersion: `${group}/v1`,
  kind,
  plural: `${kind.toLowerCase()}s`,
  namespaced: true,
});
const [ODD, ODD_SDK] = [typeOf("Odd"), typeOf("Oddsdk")];

const module = (kind: string, capabilities: string) => `import { defineKind, Type } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";

export const odd = defineKind({
  group: ${JSON.stringify(group)}, version: "v1", kind: "${kind}", plural: "${kind.toLowerCase()}s",
  singular: "${kind.toLowerCase()}", scope: "Namespaced", description: "", spec: Type.Object({ mode: Type.String() }),
  status: Type.Object({}), columns: [], owns: [{ apiVersion: "v1", kind: "ConfigMap" }], directory: __dirname,
  report: () => ({}), capabilities: {${capabilities}},
  async program({ metadata: { name, namespace = "" }, spec: { mode } }, { owner }) {
    const fail = () => { throw new Error("thrown by " + name); };
    if (mode === "rejection") void Promise.reject(new Error("thrown by " + name));
    if (mode === "timer") { setTimeout(fail, 0); await new Promise((resolve) => setTimeout(resolve, 20)); }
    if (mode === "late") setTimeout(fail, 1_000);
    if (mode === "hang") await new Promise(() => {});
    new KubernetesObject(name, { owner, manifest: {
      apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data: { mode },
    } });
  },
});
`;

beforeAll(() => {
  fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(directory, "node_modules"));
  for (const [kind, capabilities] of [
    ["Odd", ""],
    ["Oddsdk", "sdkRuntime: true"],
  ] as const) {
    fs.mkdirSync(path.join(directory, kind));
    fs.writeFileSync(
      path.join(directory, kind, "tsconfig.json"),
      JSON.stringify({ compilerOptions: COMPILER_OPTIONS }),
    );
    fs.writeFileSync(path.join(directory, kind, "index.ts"), module(kind, capabilities));
  }
});
afterAll(() => fs.rmSync(directory, { recursive: true, force: true }));

const kinds = [path.join(directory, "Odd"), path.join(directory, "Oddsdk")].join(",");
const operator = useOperator({ args: ["--kinds", kinds, "--update-timeout", "5", "--concurrency", "4"] });

const odd = async (type: ResourceType, mode: string) => {
  const name = uniqueName(mode);
  await client.create({
    apiVersion: type.apiVersion,
    kind: type.kind,
    metadata: { name, namespace: "default" },
    spec: { mode },
  });
  return name;
};
const synced = async (type: ResourceType, name: string) => {
  const object = await known(client.get(type, name, "default"));
  return object && findCondition(statusOf(object).conditions, "Synced");
};
const isSynced = (type: ResourceType, name: string) =>
  eventually(async () => expect(await synced(type, name)).toMatchObject({ status: "True" }));

it.each([
  ["plain", "rejection", ODD],
  ["plain", "timer", ODD],
  ["SDK", "rejection", ODD_SDK],
  ["SDK", "timer", ODD_SDK],
])("fails the object alone whose %s program has an error in a %s that nothing awaits", async (_, mode, type) => {
  const pid = operator.pid;
  const name = await odd(type, mode);
  await eventually(async () =>
    expect(await synced(type, name)).toMatchObject({
      status: "False",
      message: expect.stringContaining(`thrown by ${name}`),
    }),
  );
  await isSynced(type, await odd(type, "fine"));
  await client.delete(type, name, "default");
  await eventually(async () => expect(await known(client.get(type, name, "default"))).toBeUndefined());
  expect(operator.pid).toBe(pid);
});

it.each([
  ["plain", ODD],
  ["SDK", ODD_SDK],
])(
  "gives up a %s program that never ends: others are updated meanwhile, and the object can be deleted",
  async (_, type) => {
    const names = await Promise.all(Array.from({ length: 6 }, () => odd(type, "hang")));
    await Promise.all(
      names.map((name) =>
        eventually(async () =>
          expect(await synced(type, name)).toMatchObject({
            status: "False",
            reason: expect.stringMatching(/^(ProgramTimedOut|Timeout)$/),
          }),
        ),
      ),
    );
    await isSynced(type, await odd(type, "fine"));
    for (const name of names) await client.delete(type, name, "default");
    for (const name of names) {
      await eventually(async () => expect(await known(client.get(type, name, "default"))).toBeUndefined());
    }
  },
);

it("tells of an error that comes after the update", async () => {
  const name = await odd(ODD, "late");
  await isSynced(ODD, name);
  await eventually(async () => {
    const events = await client.list({ apiVersion: "events.k8s.io/v1", kind: "Event" }, { namespace: "default" });
    expect(events.items).toContainEqual(
      expect.objectContaining({
        reason: "InternalError",
        note: expect.stringContaining(`thrown by ${name}`),
        regarding: expect.objectContaining({ name }),
      }),
    );
  });
  expect(await known(client.get(CONFIG_MAP, name, "default"))).toMatchObject({ data: { mode: "late" } });
});
