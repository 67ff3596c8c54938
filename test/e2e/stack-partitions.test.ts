import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import type { Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { statusOf } from "../../stacks/contract/kind";
import { PAUSED_ANNOTATION, RECONCILE_ANNOTATION } from "../../stacks/contract/object";
import { assignmentAnnotations, sharedStackName } from "../../stacks/contract/shared-stack";
import { postgresWriter as kind } from "../../stacks/postgres-writer/kind";
import { controlPlane } from "../control-plane";
import { TestDatabase } from "../providers/postgres/database";
import {
  apply,
  edit,
  get,
  namespace,
  postgresWriter,
  remove,
  uniqueName,
  untilCondition,
  untilGone,
  untilReady,
} from "./objects";
import { useOperator } from "./operator";
import { PulumiProject } from "./pulumi";

const ONE_PARTITION = { args: ["--stack-partitions", "1"] };
const PULUMI_TIMEOUT_MS = 120_000;

const database = new TestDatabase(controlPlane().env);
const schools = [uniqueName("school"), uniqueName("school")];
let table = "";
beforeAll(async () => {
  await database.open();
  table = await database.createStudents();
  for (const name of schools) await apply(namespace(name));
});
afterAll(async () => {
  for (const name of schools) await remove(namespace(name));
  await database.close();
});
const operator = useOperator({ env: { PSQL_DBNAME: database.name } });

const stackIn = (partition: string) => sharedStackName(kind, { partition, number: 0 });
const stackOf = async (object: Manifest) => statusOf(await get(object)).stack?.name;
const ages = async (): Promise<Record<string, number>> => {
  const rows = await database.query<{ id: string; age: number }>(`SELECT id, age FROM ${table}`);
  return Object.fromEntries(rows.map(({ id, age }) => [id, age]));
};

const writerIn = (namespace: string, name: string) => postgresWriter(name, { table }, namespace);

describe("objects of namespaces that share stacks", () => {
  const [first = "", second = ""] = schools;
  const changed = { [`${first}/alex`]: 30, [`${first}/before`]: 40, [`${second}/alex`]: 31 };
  let before: Manifest;
  /** Of the same name: it is their keys that tell them apart. */
  let alex: Manifest[];
  beforeAll(() => {
    before = writerIn(first, "before");
    alex = schools.map((school) => writerIn(school, "alex"));
  });

  it("are in one stack, and what was made before stays where it is", async () => {
    await apply(before);
    await untilReady(before);
    await operator.restart(ONE_PARTITION);
    await Promise.all(alex.map(apply));
    for (const object of alex) {
      const { metadata } = await untilReady(object);
      expect(metadata.annotations).toMatchObject(assignmentAnnotations({ partition: "~0", number: 0 }));
    }
    expect(await Promise.all([before, ...alex].map(stackOf))).toEqual([stackIn(first), stackIn("~0"), stackIn("~0")]);
    expect(await ages()).toEqual({ [`${first}/alex`]: 23, [`${first}/before`]: 23, [`${second}/alex`]: 23 });
  });

  it("are changed together, each to what it says", async () => {
    await Promise.all(alex.map((object, index) => edit(object, { spec: { age: 30 + index } })));
    await edit(before, { spec: { age: 40 } });
    for (const object of [...alex, before]) await untilReady(object);
    expect(await ages()).toEqual(changed);
  });

  it(
    "change hands together, whatever namespaces they are in",
    async () => {
      for (const object of alex) await edit(object, { metadata: { annotations: { [PAUSED_ANNOTATION]: "true" } } });
      const project = await PulumiProject.open({
        PULUMI_BACKEND_URL: `file://${operator.stateDirectory}`,
        PSQL_DBNAME: database.name,
      });
      const stack = stackIn("~0");
      const manifests = alex.map((object, index) => {
        const file = path.join(operator.directory, `${index}.yaml`);
        fs.writeFileSync(file, stringify(object));
        return file;
      });
      try {
        project.configure(stack, { manifests: manifests.slice(0, 1) });
        const refused = await project.up(stack);
        expect([refused.exitCode, refused.changes]).toEqual([1, {}]);
        expect(refused.output).toContain(`has 1 other postgreswriters, which would be deleted: ${second}/alex`);
        project.configure(stack, { manifests });
        const taken = await project.up(stack);
        expect(taken.exitCode, taken.output).toBe(0);
        expect(taken.changes).toEqual({ update: 2 });
        expect(await ages()).toEqual({ ...changed, [`${first}/alex`]: 23, [`${second}/alex`]: 23 });
      } finally {
        project.close();
      }
      for (const object of alex) {
        await edit(object, {
          metadata: { annotations: { [PAUSED_ANNOTATION]: null, [RECONCILE_ANNOTATION]: "back" } },
        });
      }
      await eventually(async () => {
        for (const object of alex) expect(statusOf(await get(object)).lastHandledReconcile).toBe("back");
      });
      expect(await ages()).toEqual(changed);
    },
    PULUMI_TIMEOUT_MS,
  );

  it("stay where they are when namespaces are for themselves again, and the stack goes with the last of them", async () => {
    await operator.restart();
    const later = writerIn(second, "later");
    await apply(later);
    await untilReady(later);
    expect(await stackOf(later)).toBe(stackIn(second));
    const [one, other] = alex as [Manifest, Manifest];
    await edit(one, { spec: { age: 50 } });
    await untilReady(one);
    expect(await stackOf(one)).toBe(stackIn("~0"));
    expect(await ages()).toMatchObject({ [`${first}/alex`]: 50 });

    await remove(one);
    await untilGone(one);
    expect(await ages()).toEqual({ [`${first}/before`]: 40, [`${second}/alex`]: 31, [`${second}/later`]: 23 });
    expect(operator.stateFiles(stackIn("~0"))).not.toEqual([]);
    await remove(other);
    await untilGone(other);
    expect(operator.stateFiles(stackIn("~0"))).toEqual([]);
  });

  it("leave the stacks in which they were before their finalizers were removed by force", async () => {
    const [neighbour, alone] = [writerIn(first, "moved"), writerIn(second, "later")];
    await apply(neighbour);
    await untilReady(neighbour);
    expect(operator.membersOf(stackIn(first))).toEqual([`${first}/before`, `${first}/moved`]);
    for (const object of [neighbour, alone]) {
      await edit(object, { metadata: { annotations: { [PAUSED_ANNOTATION]: "true" } } });
      await untilCondition(object, "Reconciling", "False", "Paused");
      await remove(object);
      await edit(object, { metadata: { finalizers: null } });
      await untilGone(object);
    }
    await operator.restart(ONE_PARTITION);
    for (const object of [neighbour, alone]) {
      await apply(object);
      await untilReady(object);
      expect(await stackOf(object)).toBe(stackIn("~0"));
    }
    await eventually(() => expect(operator.stateFiles(stackIn(second))).toEqual([]));
    await edit(before, { spec: { age: 41 } });
    await untilReady(before);
    await eventually(() => expect(operator.membersOf(stackIn(first))).toEqual([`${first}/before`]));
    expect(await ages()).toEqual({ [`${first}/before`]: 41, [`${first}/moved`]: 23, [`${second}/later`]: 23 });
    await Promise.all([neighbour, alone].map(remove));
    for (const object of [neighbour, alone]) await untilGone(object);
    expect(await ages()).toEqual({ [`${first}/before`]: 41 });
  });

  it("are put into another partition by their users' annotations only when new, and harm no others there", async () => {
    const annotations = assignmentAnnotations({ partition: "~7", number: 0 });
    const guests = schools.map((school) => {
      const guest = writerIn(school, "guest");
      return { ...guest, metadata: { ...guest.metadata, annotations } };
    });
    await Promise.all(guests.map(apply));
    for (const guest of guests) await untilReady(guest);
    await edit(before, { metadata: { annotations }, spec: { age: 42 } });
    await untilReady(before);
    expect(await Promise.all([...guests, before].map(stackOf))).toEqual(["~7", "~7", first].map(stackIn));
    const [leaving] = guests as [Manifest, Manifest];
    await remove(leaving);
    await untilGone(leaving);
    expect(await ages()).toEqual({ [`${first}/before`]: 42, [`${second}/guest`]: 23 });
    expect(operator.membersOf(stackIn("~7"))).toEqual([`${second}/guest`]);
  });
});
