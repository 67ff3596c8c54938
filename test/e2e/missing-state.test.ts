import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { RECONCILE_ANNOTATION, STATE_MISSING_ANNOTATION } from "../../stacks/contract/annotations";
import { statusOf } from "../../stacks/contract/kind";
import { useDirectory } from "../directories";
import { useDatabase } from "../providers/postgres/database";
import { COMPILER_OPTIONS } from "./compiler-options";
import { conditionOf, removeUntilGone, untilCondition, untilGone, untilReady } from "./conditions";
import { memcached, namespace, podSet, postgresWriter, ROLE_BINDING, tenant, uniqueName } from "./manifests";
import { apply, client, edit, eventsAbout, find, get, remove, requestUpdate } from "./objects";
import { kindstack, useOperator } from "./operator";

/*
 * States that are lost: what the status of an object names is not in the backend. Nothing is made or deleted for it, unless its
 * kind finds all that it made by its mark, or a user decides. Two kinds cannot find it: one with a plugin, and one with a
 * provider of its own, which notes each creation.
 */

const ROOT = path.resolve(__dirname, "../..");
const directory = useDirectory();
const [keyring, shelf] = [path.join(directory, "keyring"), path.join(directory, "shelf")];
const group = `${uniqueName("lost")}.example.com`;

const PROVIDER = `import { appendFileSync, rmSync, writeFileSync } from "node:fs";
import { defineProvider, DynamicResource } from "kindstack";

interface Letter { file: string; text: string }

export const { stub, provider } = defineProvider<Letter, Letter>("lost/letter", {
  check: async (_, news) => ({ inputs: news, failures: [] }),
  diff: async (_id, olds, news) => ({ changes: olds.text !== news.text }),
  async create(inputs) {
    appendFileSync(inputs.file + ".creations", ".");
    writeFileSync(inputs.file, inputs.text);
    return { id: inputs.file, outs: inputs };
  },
  read: async (id, outs) => ({ id, props: outs }),
  async update(id, _olds, news) {
    writeFileSync(id, news.text);
    return { outs: news };
  },
  delete: async (id) => rmSync(id, { force: true }),
  release: async () => {},
});

export class Letters extends DynamicResource {
  constructor(name: string, inputs: Letter) {
    super({ module: "lost", name: "Letter", stub }, name, { ...inputs });
  }
}
`;
const KIND = `import { defineKind, Type } from "kindstack";
import { Letters, provider, stub } from "./provider";
export const letter = defineKind({
  group: ${JSON.stringify(group)}, version: "v1", kind: "Letter", plural: "letters", singular: "letter",
  scope: "Namespaced", description: "", spec: Type.Object({ text: Type.String() }), status: Type.Object({}), columns: [],
  owns: [], directory: __dirname, report: () => ({}),
  program({ metadata, spec }) {
    new Letters(metadata.name, { file: ${JSON.stringify(shelf)} + "/" + metadata.name, text: spec.text });
  },
  capabilities: { providers: [{ stub, provider }] },
});
`;

const database = useDatabase();
let table = "";
beforeAll(async () => {
  table = await database.createStudents();
  fs.mkdirSync(shelf);
  fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(directory, "node_modules"));
  fs.mkdirSync(path.join(directory, "letter"));
  const files = { "tsconfig.json": JSON.stringify({ compilerOptions: COMPILER_OPTIONS }), "provider.ts": PROVIDER };
  for (const [file, text] of Object.entries({ ...files, "index.ts": KIND })) {
    fs.writeFileSync(path.join(directory, "letter", file), text);
  }
});
const kinds = ["all", path.join(ROOT, "examples/src"), path.join(directory, "letter")];
const operator = useOperator({
  args: [...kinds.flatMap((kind) => ["--kinds", kind]), "--kind-files", directory],
  env: { PSQL_DBNAME: database.name, KEYRING_FOLDER: keyring },
});
afterAll(async () => {
  const definitions = await client.resourceType("apiextensions.k8s.io/v1", "CustomResourceDefinition");
  const examples = ["apikeys", "appdatabases", "webservices"].map((plural) => `${plural}.examples.kindstack.dev`);
  for (const name of [`letters.${group}`, ...examples]) await client.delete(definitions, name);
});

type Named = Manifest & { metadata: { name: string } };
const objectOf = (apiVersion: string, kind: string, name: string, spec: object): Named => {
  return { apiVersion, kind, metadata: { name, namespace: "default" }, spec };
};
const apiKey = (name: string) => objectOf("examples.kindstack.dev/v1", "ApiKey", name, { label: name });
const letter = (name: string) => objectOf(`${group}/v1`, "Letter", name, { text: name });
const creationsOf = (name: string) => fs.readFileSync(path.join(shelf, `${name}.creations`), "utf8").length;
const isOnShelf = (name: string) => fs.existsSync(path.join(shelf, name));
const keys = () => fs.readdirSync(keyring).sort();
const secretOf = async (name: string) => (await get(objectOf("v1", "Secret", `${name}-key`, {}))).data;
const decide = (object: Manifest, decision: string | null) =>
  edit(object, { metadata: { annotations: { [STATE_MISSING_ANNOTATION]: decision } } });
const decisionOn = async (object: Manifest) => (await get(object)).metadata.annotations?.[STATE_MISSING_ANNOTATION];
const untilMissing = (object: Manifest) =>
  eventually(async () => {
    const live = await get(object);
    expect(conditionOf(live, "Synced")).toMatchObject({ status: "False", reason: "StateMissing" });
    expect(conditionOf(live, "Stalled")).toMatchObject({ status: "True", reason: "StateMissing" });
    return live;
  });

/** Removes what the backend has of objects' stacks, as a wrong or empty backend lacks it. */
async function lose(...objects: Manifest[]): Promise<string[]> {
  const stacks: string[] = [];
  for (const object of objects) {
    const { stack } = statusOf(await get(object));
    if (stack === undefined) throw new Error(`${object.metadata.name} has no stack`);
    await eventually(async () => {
      const files = operator.stateFiles(`/${stack.name}`);
      expect(files).not.toEqual([]);
      // An operation that runs would write its state again.
      expect(files.filter((file) => file.includes("/locks/"))).toEqual([]);
      for (const file of files) fs.rmSync(file);
    });
    stacks.push(stack.name);
  }
  return stacks;
}

async function made(...objects: Manifest[]): Promise<LiveObject[]> {
  await Promise.all(objects.map(apply));
  return Promise.all(objects.map(untilReady));
}

const noted = async (object: LiveObject, reason: string) =>
  (await eventsAbout(object)).filter((event) => event.reason === reason);

describe("an object of a plugin's whose state is lost", () => {
  let key: Named;
  beforeEach(async () => {
    key = apiKey(uniqueName("key"));
    await made(key);
  });

  it("is told of at rest, and nothing is made for it until a user decides", async () => {
    const [before, secret] = [keys(), await secretOf(key.metadata.name)];
    const [stack] = await lose(key);
    await operator.restart();
    const live = await untilMissing(key);
    expect(conditionOf(live, "Stalled").message).toContain(`the stack ${stack}`);
    await eventually(async () => {
      const labels = { kind: "apikeys.examples.kindstack.dev", reason: "StateMissing" };
      expect(await operator.metric("kindstack_objects", labels)).toBe(1);
    });

    await edit(key, { metadata: { annotations: { [RECONCILE_ANNOTATION]: "now" } }, spec: { label: "other" } });
    await untilCondition(key, "Synced", "False", "StateMissing");
    expect([keys(), await secretOf(key.metadata.name)]).toEqual([before, secret]);
    const told = await eventually(async () => {
      const events = await noted(live, "StateMissing");
      expect(events).not.toEqual([]);
      return events.map(({ note }) => note);
    });
    for (const note of told) expect(note).toContain("nothing is made or deleted");

    // What a plugin has made cannot be found, and is not made once more by "Adopt".
    await decide(key, "Adopt");
    await eventually(async () =>
      expect(conditionOf(await get(key), "Stalled").message).toContain("a plugin cannot adopt keyring:index:Key"),
    );
    expect(keys()).toEqual(before);

    await decide(key, "Recreate");
    await eventually(async () => expect(await decisionOn(key)).toBeUndefined());
    await untilReady(key);
    expect(keys()).toHaveLength(before.length + 1);
    expect(await secretOf(key.metadata.name)).not.toEqual(secret);
    await eventually(async () => expect(await noted(live, "StateMissing")).not.toEqual([]));
  });

  it("is not deleted, unless a user decides to forget it", async () => {
    const before = keys();
    await lose(key);
    await remove(key);
    await untilMissing(key);
    expect(keys()).toEqual(before);
    await decide(key, "Recreate"); // no decision on a deletion
    await untilMissing(key);

    await decide(key, " forget");
    await untilGone(key);
    await untilGone(objectOf("v1", "Secret", `${key.metadata.name}-key`, {}));
    expect(keys()).toEqual(before);
  });

  it("is deleted with all that it made when the state is there again", async () => {
    const before = keys();
    const { stack } = statusOf(await get(key));
    const [file = ""] = operator.stateFiles(`/stacks/kindstack/${stack?.name}`);
    fs.renameSync(file, `${directory}/aside`);
    await remove(key);
    await untilMissing(key);
    fs.renameSync(`${directory}/aside`, file);
    await requestUpdate(key, "now");
    await untilGone(key);
    expect(keys()).toHaveLength(before.length - 1);
  });
});

describe("an object with a provider of its own", () => {
  it("adopts when a user decides so, once", async () => {
    const object = letter(uniqueName("letter"));
    const { name } = object.metadata;
    await made(object);
    for (const creations of [2, 3]) {
      await lose(object);
      await requestUpdate(object, `${creations}`);
      await untilMissing(object);
      expect(creationsOf(name)).toBe(creations - 1);
      await decide(object, "Adopt");
      await eventually(async () => expect(await decisionOn(object)).toBeUndefined());
      await untilReady(object);
      expect(creationsOf(name)).toBe(creations);
    }
    await removeUntilGone(object);
    expect(isOnShelf(name)).toBe(false);
  });

  it("is deleted with what it made when a user decides to adopt that first", async () => {
    const object = letter(uniqueName("letter"));
    await made(object);
    await lose(object);
    await remove(object);
    await untilMissing(object);
    expect(isOnShelf(object.metadata.name)).toBe(true);
    await decide(object, "Adopt");
    await untilGone(object);
    expect(isOnShelf(object.metadata.name)).toBe(false);
  });

  it("keeps no decision on a state that is there", async () => {
    const object = letter(uniqueName("letter"));
    await made(object);
    await decide(object, "Recreate");
    await eventually(async () => expect(await decisionOn(object)).toBeUndefined());
    expect(creationsOf(object.metadata.name)).toBe(1);
  });

  it("is refused a decision that is none", async () => {
    const object = letter(uniqueName("letter"));
    await made(object);
    await decide(object, "Ignore").catch(() => undefined); // a policy may refuse it
    await eventually(async () => {
      const paused = statusOf(await get(object)).conditions?.find(({ type }) => type === "Paused");
      expect([paused?.reason, await decisionOn(object)]).toEqual(["InvalidAnnotation", "Ignore"]);
    });
    await decide(object, null);
    await untilReady(object);
  });

  it("is decided on by one command, with others", async () => {
    const objects = [letter(uniqueName("letter")), letter(uniqueName("letter"))];
    await made(...objects);
    await lose(...objects);
    await operator.restart();
    await Promise.all(objects.map(untilMissing));
    const words = ["state", "resolve", "--kinds", path.join(directory, "letter")];
    const listed = kindstack(words);
    for (const { metadata } of objects) expect(listed).toContain(`Letter  default    ${metadata.name}`);
    expect(() => kindstack([...words, "--missing", "Adopt"])).toThrow("name one object, or use --all");
    expect(await decisionOn(objects[0] as Manifest)).toBeUndefined();

    expect(
      kindstack([...words, "--missing", "Adopt", "--all"])
        .trim()
        .split("\n"),
    ).toHaveLength(2);
    await Promise.all(objects.map(untilReady));
    expect(kindstack(words)).toMatch(/^no such object has lost its state; looked at: letters\..+ --kinds\n$/);
  });
});

describe("objects of kinds whose marks lead to all", () => {
  it("take over by themselves what they made, and say so", async () => {
    const name = uniqueName("lost");
    const objects = [
      tenant(name),
      postgresWriter(name, { table }),
      memcached(name, { size: 1, containerPort: 11211 }),
      podSet(name, 1),
    ];
    await Promise.all(objects.map(apply));
    await Promise.all(objects.map((object) => untilCondition(object, "Synced", "True")));
    const { uid } = (await get(namespace(name))).metadata;
    const stacks = await lose(...objects);
    await operator.restart();
    await eventually(() => {
      for (const stack of stacks) expect(operator.stateFiles(`/stacks/kindstack/${stack}.json`)).toHaveLength(1);
    });
    for (const object of objects) {
      const live = await untilCondition(object, "Synced", "True");
      await eventually(async () => expect(await noted(live, "StateMissing")).toHaveLength(1));
    }
    expect((await get(namespace(name))).metadata.uid).toBe(uid);
    await Promise.all(objects.map(remove));
    await Promise.all(objects.map(untilGone));
    await untilGone(namespace(name));
    expect(await rows(name)).toEqual([]);
  });

  it("leave nothing behind when their state is lost before their deletion", async () => {
    const name = uniqueName("lost");
    const [owner, kept] = [tenant(name, { namespaces: [name, `${name}-old`] }), tenant(`${name}-kept`)];
    const writer = postgresWriter(name, { table });
    await made(owner, kept, writer);
    await lose(owner, writer);
    // What a spec without it would not take over is found by its mark.
    await edit(owner, { metadata: { annotations: { "kindstack.dev/paused": "true" } }, spec: { namespaces: [name] } });
    await remove(owner);
    await edit(owner, { metadata: { annotations: { "kindstack.dev/paused": null } } });
    await remove(writer);
    await Promise.all([owner, writer].map(untilGone));
    for (const gone of [name, `${name}-old`]) expect(await find(namespace(gone))).toBeUndefined();
    expect((await client.list(ROLE_BINDING, { namespace: name })).items).toEqual([]);
    expect(await rows(name)).toEqual([]);
    await untilReady(kept);
  });

  it("leave nothing behind that their state is too old to have", async () => {
    const name = uniqueName("old");
    const object = tenant(name);
    await made(object);
    const [file = ""] = operator.stateFiles(`/stacks/kindstack/${statusOf(await get(object)).stack?.name}.json`);
    const before = fs.readFileSync(file);
    await edit(object, { spec: { namespaces: [name, `${name}-new`] } });
    await untilReady(object);
    fs.writeFileSync(file, before);
    await removeUntilGone(object);
    for (const gone of [name, `${name}-new`]) expect(await find(namespace(gone))).toBeUndefined();
  });

  async function rows(name: string): Promise<unknown[]> {
    return database.query(`SELECT * FROM ${table} WHERE id = $1`, [`default/${name}`]);
  }
});

it("a crash between a destroy and the removal of the finalizer is no lost state", async () => {
  const object = letter(uniqueName("crash"));
  const { name } = object.metadata;
  const [live] = await made(object);
  const stack = statusOf(live as LiveObject).stack?.name ?? "";
  const policy = await keepFinalizers(name);
  await remove(object);
  await eventually(() => {
    expect(operator.stateFiles(`kindstack-destroyed/${stack}`)).toHaveLength(1);
    expect(operator.stateFiles(`/stacks/kindstack/${stack}`)).toEqual([]); // is removed after that was written
  });
  await operator.kill();
  await policy.remove();
  await operator.start();
  await untilGone(object);
  expect(creationsOf(name)).toBe(1);
  expect(isOnShelf(name)).toBe(false);
  expect(await noted(live as LiveObject, "StateMissing")).toEqual([]);
  await eventually(() => expect(operator.stateFiles("kindstack-destroyed")).toEqual([]));
});

/** Has the API server refuse the removal of an object's finalizer. */
async function keepFinalizers(name: string): Promise<{ remove(): Promise<void> }> {
  const apiVersion = "admissionregistration.k8s.io/v1";
  const policy = {
    apiVersion,
    kind: "ValidatingAdmissionPolicy",
    metadata: { name },
    spec: {
      matchConstraints: {
        resourceRules: [{ apiGroups: [group], apiVersions: ["*"], resources: ["letters"], operations: ["UPDATE"] }],
      },
      validations: [{ expression: `object.metadata.name != '${name}' || has(object.metadata.finalizers)` }],
    },
  };
  const binding = {
    apiVersion,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name },
    spec: { policyName: name, validationActions: ["Deny"] },
  };
  await Promise.all([apply(policy), apply(binding)]);
  await eventually(async () => {
    const refused = client.json("PATCH", `/apis/${group}/v1/namespaces/default/letters/${name}`, {
      query: { dryRun: "All" },
      body: { metadata: { finalizers: null } },
      contentType: "application/merge-patch+json",
    });
    await expect(refused).rejects.toThrow(/denied|failed expression/);
  });
  return { remove: async () => void (await Promise.all([remove(policy), remove(binding)])) };
}
