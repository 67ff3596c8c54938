import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { confirm } from "../../src/cli/confirm";

function terminal(typed: string, isTTY = true) {
  const input = Object.assign(new PassThrough(), { isTTY });
  input.end(typed);
  return { input, output: Object.assign(new PassThrough(), { isTTY: true }) };
}

it.each([
  ["y\n", true],
  ["Yes \n", true],
  ["n\n", false],
  ["\n", false],
  ["yesterday\n", false],
  ["", false],
])("takes nothing but yes for a yes: %j", async (typed, answer) => {
  expect(await confirm("Sure?", terminal(typed))).toBe(answer);
});

it("asks nobody where there is no terminal", async () => {
  expect(await confirm("Sure?", terminal("y\n", false))).toBeUndefined();
});
