import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { secret } from "@pulumi/pulumi/output";
import { beforeAll, describe, expect, it } from "vitest";
import { errorMessageOf } from "../../providers/errors";
import type { StackEngine } from "../../src/automation/engine";
import { stockBeside, summaryOf, TestEngine } from "./test-engine";
import { Thing } from "./things";

/* One state, for the engine and for the CLI of another version of Pulumi. */

let test: TestEngine;
let engines: Record<"engine" | "CLI", StackEngine>;
beforeAll(async () => {
  test = await TestEngine.open();
  engines = { engine: test.engine, CLI: await stockBeside(test, "stock") };
  return async () => {
    await engines.CLI.close();
    await test.close();
  };
});

const program = (value: string) => () => {
  new Thing("plain", { key: "plain", value });
  new Thing("secret", { key: "secret", value: secret(`hush ${value}`) });
};

describe.each([
  ["engine", "CLI"],
  ["CLI", "engine"],
] as const)("a state that the %s has written", (writer, reader) => {
  const stack = `written-by-${writer.toLowerCase()}`;

  it(`is one for the ${reader}, which changes and destroys what it has`, async () => {
    expect((await engines[writer].up(stack, program("1"))).failures).toEqual([]);
    const same = await engines[reader].up(stack, program("1"), { refresh: true });
    expect(summaryOf(same)).toEqual({ result: "succeeded", resourceChanges: {} });
    expect(summaryOf(await engines[reader].up(stack, program("2")))).toEqual({
      result: "succeeded",
      resourceChanges: { update: 2 },
    });
    expect(summaryOf(await engines[writer].up(stack, program("2")))).toMatchObject({ resourceChanges: {} });
    expect((await engines[reader].destroy(stack)).failures).toEqual([]);
    expect(test.things.live.size).toBe(0);
  });
});

describe.each([
  ["a newer schema", { version: 99 }, /newer version of Pulumi .*with version 99|unsupported checkpoint version 99/],
  [
    "features that it does not know",
    { version: 4, features: ["future"] },
    /with the features future|support for the following features: future/,
  ],
])("a state of %s", (_what, written, words) => {
  it.each(["engine", "CLI"] as const)("is refused by the %s with its name, and stays as it is", async (name) => {
    const stack = `newer-${written.version}-${name.toLowerCase()}`;
    expect((await test.up(stack, { a: "1" })).failures).toEqual([]);
    const file = join(test.directory, "state/.pulumi/stacks/kindstack", `${stack}.json`);
    const newer = JSON.stringify({ ...JSON.parse(await readFile(file, "utf8")), ...written });
    await writeFile(file, newer);

    for (const operation of [
      () => engines[name].up(stack, () => test.declare(stack, { a: "2" })),
      () => engines[name].preview(stack, () => test.declare(stack, { a: "2" })),
      () => engines[name].destroy(stack),
    ]) {
      expect(await told(operation())).toMatch(words);
    }
    expect(await readFile(file, "utf8")).toBe(newer);
    expect(test.things.live.get(`${stack}/a`)).toBe("1");
  });
});

/** What a failed operation tells, by an error or by its failures. */
async function told(operation: Promise<{ failures: { message: string }[] }>): Promise<string> {
  return operation.then(({ failures }) => failures.map(({ message }) => message).join("\n"), errorMessageOf);
}
