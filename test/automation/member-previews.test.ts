import { describe, expect, it } from "vitest";
import { type MemberPreview, memberPreviews, type StackPreview } from "../../src/automation/member-previews";
import type { PlannedChange } from "../../src/automation/planned-changes";
import { postgresWriter } from "../../stacks/postgres-writer/kind";

const change = (name: string, operation: PlannedChange["operation"]): PlannedChange => ({
  urn: `urn:pulumi:s::kindstack::Row::${name}`,
  type: "Row",
  name,
  operation,
});
const request = (key: string, stack: string): MemberPreview => ({
  stack,
  member: { kind: postgresWriter, key },
  program: () => {},
  options: {},
});
const keysOf = (members: readonly MemberPreview[]) => members.map(({ member }) => member.key);

/** Previews in which each object's row is updated; `broken` ones fail, and `fresh` ones are new. */
function previews(broken: string[] = [], fresh: string[] = []) {
  const runs: string[][] = [];
  const preview = memberPreviews(async (_stack, members): Promise<StackPreview> => {
    const keys = keysOf(members);
    runs.push(keys);
    await new Promise(setImmediate);
    return {
      exists: true,
      changes: keys.map((key) => change(`${key}/row`, fresh.includes(key) ? "create" : "update")),
      failures: keys
        .filter((key) => broken.includes(key))
        .map((key) => ({ resource: key, errorClass: "terminal", reason: "Invalid", message: "no" })),
    };
  });
  return { runs, preview };
}

describe("objects of one stack", () => {
  it("that come while one is previewed are the next preview together, and each has its own changes", async () => {
    const { runs, preview } = previews([], ["default/c"]);
    const results = await Promise.all(
      ["default/a", "default/b", "default/c"].map((key) => preview(request(key, "stack"))),
    );
    expect(runs).toEqual([["default/a"], ["default/b", "default/c"]]);
    expect(results.map(({ changes }) => changes.map(({ name }) => name))).toEqual([
      ["default/a/row"],
      ["default/b/row"],
      ["default/c/row"],
    ]);
    expect(results.map(({ exists }) => exists)).toEqual([true, true, false]);
  });

  it("are previewed one by one when one of them fails", async () => {
    const { runs, preview } = previews(["default/b"]);
    const results = await Promise.all(
      ["default/a", "default/b", "default/c"].map((key) => preview(request(key, "stack"))),
    );
    expect(runs).toEqual([["default/a"], ["default/b", "default/c"], ["default/b"], ["default/c"]]);
    expect(results.map(({ failures }) => failures.length)).toEqual([0, 1, 0]);
  });

  it("do not wait for those of another stack", async () => {
    const { runs, preview } = previews();
    await Promise.all(["one", "two"].map((stack) => preview(request("default/a", stack))));
    expect(runs).toEqual([["default/a"], ["default/a"]]);
  });

  it("all fail when the preview cannot be run, and the next one begins", async () => {
    let isDown = true;
    const preview = memberPreviews(async () => {
      if (isDown) throw new Error("no engine");
      return { exists: true, changes: [], failures: [] };
    });
    const answers = await Promise.allSettled(["default/a", "default/b"].map((key) => preview(request(key, "s"))));
    expect(answers.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    isDown = false;
    await expect(preview(request("default/a", "s"))).resolves.toMatchObject({ exists: true });
  });
});
