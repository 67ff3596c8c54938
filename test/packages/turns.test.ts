import { expect, it } from "vitest";
import { Turns } from "../../src/packages/process";

/** Takes a turn, and tells of its begin; {@link end} ends it. */
function taking(turns: Turns) {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const take = async (name: string, isUrgent = false) => {
    using _ = await turns.take({ object: name[0] ?? "", isShared: name.endsWith("+") }, isUrgent);
    begun.push(name);
    await new Promise<void>((resolve) => ends.set(name, resolve));
  };
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const end = async (name: string) => {
    ends.get(name)?.();
    await settled();
  };
  return { begun, take, end, settled };
}

it("lets one object after another have its turn, the urgent ones first", async () => {
  const turns = new Turns();
  const { begun, take, end, settled } = taking(turns);
  for (const [name, isUrgent] of [["a"], ["b"], ["c"], ["d", true], ["e", true]] as const) void take(name, isUrgent);
  await settled();
  expect(begun).toEqual(["a"]);
  expect(turns.isTaken("b")).toBe(true);
  for (const name of ["a", "d", "e", "b", "c"]) await end(name);
  expect(begun).toEqual(["a", "d", "e", "b", "c"]);
  expect(turns.isTaken("b")).toBe(false);
});

it("lets calls of one object's update have it together, so that none waits for another of them", async () => {
  const turns = new Turns();
  const { begun, take, end, settled } = taking(turns);
  for (const name of ["a+", "a1", "b1", "b2", "c+", "d1", "c1"]) void take(name);
  await settled();
  expect(begun).toEqual(["a+", "a1"]);
  await end("a+");
  expect(begun).toEqual(["a+", "a1"]);
  await end("a1");
  expect(begun).toEqual(["a+", "a1", "b1"]);
  await end("b1");
  await end("b2");
  expect(begun).toEqual(["a+", "a1", "b1", "b2", "c+", "c1"]);
});

it("tells the first of a turn that it is alone", async () => {
  const turns = new Turns();
  const update = { object: "a", isShared: true };
  using first = await turns.take(update, false);
  using second = await turns.take(update, false);
  expect([first.isFirst, second.isFirst]).toEqual([true, false]);
});
