import { describe, expect, it, vi } from "vitest";
import { type ClassifiedError, RetryableError } from "../../providers/errors";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import type { ObjectInputs } from "../../providers/kubernetes/object-inputs";
import { ROW_STUB } from "../../providers/postgres/row";
import type { inspectRow, RowFinding } from "../../providers/postgres/row-inspection";
import type { PlannedChange } from "../../src/automation/planned-changes";
import type { PlannedResource } from "../../src/plan/effects";
import { conflictFinder, refusalsOf } from "../../src/plan/obstacles";
import { acme, globex, marksOf } from "../objects";

const manifest: Manifest = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "web", namespace: "default" } };

function resource(change: Partial<PlannedChange>, more: Partial<PlannedResource> = {}): PlannedResource {
  return {
    change: { urn: "urn", type: "t", name: "web", operation: "create", ...change },
    shown: { name: "web", type: "ConfigMap", operation: "update", fields: [] },
    ...more,
  };
}

describe("an object", () => {
  /** One that is to be applied, where there is one with this metadata. */
  function objectWith(metadata: object | undefined, given: Partial<ObjectInputs> = {}, operation = "create") {
    const inputs: ObjectInputs = { manifest, owner: acme, ...given };
    const live = metadata && { ...manifest, metadata: { ...manifest.metadata, uid: "u", ...metadata } };
    const change = { operation: operation as PlannedChange["operation"], inputs: { ...inputs } };
    return resource(change, { inputs, live: live as LiveObject | undefined });
  }
  const ofGlobex = marksOf(globex, { created: true });
  const find = (object: PlannedResource) => conflictFinder()([object]);

  it("of another owner is refused, with who has it", async () => {
    const { conflicts } = await find(objectWith(ofGlobex));
    expect(conflicts).toEqual([
      {
        ...{ urn: "urn", id: "v1/ConfigMap/default/web", holder: globex.description },
        message: expect.stringMatching(/^Conflict: ConfigMap web belongs to Tenant\..*\/globex\./),
      },
    ]);
    expect([...(await refusalsOf([objectWith(ofGlobex)])).keys()]).toEqual(["urn"]);
  });

  it("that grants rights, and that the state has, is not refused for a label that others have changed", async () => {
    const binding = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding" };
    const { live, change, ...others } = objectWith(ofGlobex);
    const object = { ...others, live: { ...live, ...binding } as LiveObject };
    const old = { inputs: {}, outputs: { __provider: OBJECT_STUB, fields: "f", uid: "u", manifest } };
    expect((await find({ ...object, change: { ...change, old } })).conflicts).toEqual([]);
    expect((await find({ ...object, change })).conflicts).toHaveLength(1);
  });

  it.each<[string, PlannedResource, number]>([
    ["of its owner is not", objectWith(marksOf(acme, { created: true })), 0],
    ["that is not there is created", objectWith(undefined), 0],
    ["that is being deleted is waited for", objectWith({ ...ofGlobex, deletionTimestamp: "now" }), 0],
    ["that no one manages is adopted", objectWith({}), 0],
    ["is not adopted where the program says so", objectWith({}, { adopt: false }), 1],
    ["that lost its label stays its owner's all the same", objectWith({}, { adopt: false }, "update"), 0],
  ])("%s", async (_, object, expected) => {
    const { conflicts, unknown } = await find(object);
    expect([conflicts.length, unknown.size]).toEqual([expected, 0]);
  });
});

describe("a row", () => {
  const location = { schema: "public", name: "students" };
  const inputs = { table: "students", key: { id: "a" }, values: { age: 23, password: "[secret]" }, owner: acme };
  const row = (change: Partial<PlannedChange> = {}) =>
    resource({ inputs: { __provider: ROW_STUB, ...inputs }, ...change });
  /** A database that answers with these, one after the other, and what is found in it. */
  const findIn = async (resources: PlannedResource[], ...answers: (RowFinding | ClassifiedError)[]) => {
    const inspect = vi.fn<typeof inspectRow>(async () => {
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      if (answer instanceof Error) throw answer;
      return answer ?? {};
    });
    return { ...(await conflictFinder(inspect)(resources)), inspect };
  };

  it("that a creation takes over shows what is overwritten, and no secret, which it is looked for with", async () => {
    const secretInputs = () => ({ ...inputs, values: { age: 23, password: "new" } });
    const live = { live: { age: "22", password: "old" } };
    const { overwritten, inspect } = await findIn([row({ secretInputs })], live);
    const password = { path: "values.password", before: "[secret]", after: "[secret]" };
    expect(overwritten.get("urn")).toEqual([{ path: "values.age", before: "22", after: 23 }, password]);
    expect(inspect).toHaveBeenCalledExactlyOnceWith(expect.objectContaining(secretInputs()), { owners: [acme.uid] });
    const whole = row({ secretInputs, inputs: { __provider: ROW_STUB, ...inputs, values: "[secret]" } });
    expect((await findIn([whole], live)).overwritten.get("urn")).toContainEqual(password);
  });

  it.each<[PlannedChange["operation"], object]>([
    ["update", { owners: [acme.uid, "former"], made: { incarnation: "i", location } }],
    ["replace", { owners: [acme.uid, "former"] }],
  ])("of an %s is looked for as what it was made as, if it stays that", async (operation, claimant) => {
    const outputs = { ...inputs, owner: { uid: "former" }, incarnation: "i", location };
    const { inspect } = await findIn([row({ operation, old: { inputs, outputs } })], {});
    expect(inspect).toHaveBeenCalledExactlyOnceWith(expect.objectContaining(inputs), claimant);
  });

  it("that is deleted, and what is of another provider, is not looked for", async () => {
    const { inputs: _, ...deleted } = row({ operation: "delete" }).change;
    expect((await findIn([resource(deleted), resource({ inputs })], {})).inspect).not.toHaveBeenCalled();
  });

  it("is looked for once more after a time-out, which may have been the asking process's own", async () => {
    const { unknown, overwritten } = await findIn([row()], new RetryableError("ConnectionTimeout", ""), { live: {} });
    expect([unknown.size, overwritten.size]).toEqual([0, 1]);
  });

  it("is not looked for any more once the database has not answered, as an error of another row is", async () => {
    const rows = Array.from({ length: 9 }, (_, index) => row({ urn: `urn-${index}` }));
    const refused = new RetryableError("ConnectionFailed", "refused");
    const { unknown, inspect } = await findIn(rows, refused);
    expect(unknown).toEqual(new Map(rows.map(({ change }) => [change.urn, refused])));
    expect(inspect).toHaveBeenCalledTimes(4);
    const cause = Object.assign(new Error("locked"), { code: "55P03", severity: "ERROR" });
    expect((await findIn(rows, new RetryableError("LockTimeout", "locked", { cause }), {})).unknown.size).toBe(1);
  });
});
