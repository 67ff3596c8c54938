import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, it } from "vitest";
import { GO_OPERATOR, goOperatorTool } from "../../bench/go-operator";
import { readResults } from "../../bench/results";
import { resolveBinary } from "../../src/toolchain/resolve";
import { useDirectory } from "../directories";

const MAIN = path.resolve(__dirname, "../../dist/bench/main.js");
const TIMEOUT_MS = 180_000;
const GO_BUILD_TIMEOUT_MS = 600_000;

const directory = useDirectory();
beforeAll(async () => {
  await resolveBinary(goOperatorTool());
}, GO_BUILD_TIMEOUT_MS);

it("a bench prints its figures, writes them as JSON and leaves nothing behind", { timeout: TIMEOUT_MS }, async () => {
  const json = path.join(directory, "results", "bench.json");
  const options = { env: { ...process.env, TMPDIR: directory } };

  const { stdout } = await promisify(execFile)(
    process.execPath,
    [MAIN, "one-object", "--quick", "--json", json],
    options,
  );

  const { quick, sections } = await readResults(json);
  expect(quick).toBe(true);
  expect(sections.map(({ id }) => id)).toEqual(["one-object"]);
  for (const { what, value, against } of sections[0]?.figures ?? []) {
    expect(value, what).toBeGreaterThan(0);
    if (against !== undefined) expect(against.value, what).toBeGreaterThan(0);
    expect(stdout).toContain(what);
  }
  const besides = sections[0]?.figures.filter(({ against }) => against?.what === GO_OPERATOR) ?? [];
  expect(besides).not.toEqual([]);
  expect(fs.readdirSync(directory)).toEqual(["results"]);
});
