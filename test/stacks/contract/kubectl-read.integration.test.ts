import { execFileSync } from "node:child_process";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { expect, it } from "vitest";
import { resolveBinary } from "../../../src/toolchain/resolve";
import { type ManifestDocument, parseManifests } from "../../../stacks/contract/parse-manifests";
import { testTools } from "../../tools";

/*
 * Files are read as kubectl's own libraries read them, or refused: compared over generated ones. What kubectl refuses is no matter.
 */

const FILES = 10_000;
const SEED = 67;

/** What YAML and JSON are made of, and what readers disagree about. */
const PARTS = [
  ..."ab:'\"[]{},#@`%-?=!|>~é😀\\\t\r\0\u0001\u0085\u00a0\u2028\u2029\ufeff",
  ...["\n", "\n", "\n  ", "\n    ", "\r\n", "  ", ": ", "- ", ", ", " # c"],
  ...["---\n", "--- ", "---", "...\n", "%YAML 1.1\n"],
  ...["kind", "apiVersion: v1\n", "kind: A\n", "items:", "- a\n- b\n", "key: value\n", '{"a": 1}', "? ", "//"],
  ...["&x ", "*x", "<<: ", "<<: *x", "x: &x {c: 1}\n", "y: *x\n", "m: {<<: *x, d: 2}\n", "!!str ", "!!int ", "!t "],
  ...["| ", "|\n", "|-\n", "|+\n", ">\n", ">2\n", "|1-\n", "\\n", "\\x41", "\\u0041", "\\/", "\\\n"],
  ..."yes no y on true null 0644 08 0o7 0b11 0x1F 1_000 1.5 1e3 .5 .5_0 +1".split(" "),
  ...["-0", "1:30", "2001-12-14", "-.inf", ".nan", "1e400", "9007199254740993", '{"kind":"B","apiVersion":"v1"}'],
];
const HEAD = "kind: A\napiVersion: v1\n";
const IN_SPEC = ["", "s: ", "s:\n  ", "s:\n- ", 's: "', "items:\n- "].map((text) => HEAD + text);
const FIRST = [...IN_SPEC, "", "{kind: A, apiVersion: v1, s: "];
const JSON_FIRST = ['{"kind":"A","apiVersion":"v1"}\n', '{"kind":"List","items":[{"kind":"A","apiVersion":"v1","a":'];
const LAST = ["", "\n", "}", '"\n', "}]}", "\nz: 1\n", "\n---\nkind: C\napiVersion: v1\n"];

const file = fc
  .tuple(
    fc.constantFrom(...FIRST, ...JSON_FIRST),
    fc.array(fc.constantFrom(...PARTS), { maxLength: 9 }),
    fc.constantFrom(...LAST),
  )
  .map(([first, parts, last]) => first + parts.join("") + last);

interface Read {
  objects: unknown[];
  errors?: string[];
}

function isObject(value: unknown): value is ManifestDocument {
  const { apiVersion, kind } = (value ?? {}) as Partial<ManifestDocument>;
  return [apiVersion, kind].every((text) => typeof text === "string" && text !== "");
}

it(`kubectl reads the same in ${FILES} generated files, or they are refused`, async () => {
  const path = await resolveBinary(testTools["kubectl-read"]);
  const files = fc.sample(file, { numRuns: FILES, seed: SEED });
  const input = JSON.stringify(files.map((text) => Buffer.from(text).toString("base64")));
  const theirs = JSON.parse(execFileSync(path, { input, encoding: "utf8", maxBuffer: 1 << 28 })) as Read[];
  const refused = new Set<string>();
  const different: object[] = [];
  let read = 0;
  for (const [index, text] of files.entries()) {
    const { objects, problems } = parseManifests(text, "a.yaml", { strict: false });
    for (const { message } of problems) refused.add(message.replace(/^(?:document \d+: )?(?:line \d+: )?/, ""));
    if (problems.length > 0) continue;
    const kubectl = (theirs[index]?.objects ?? []).filter(isObject);
    const ours = JSON.parse(JSON.stringify(objects.map(({ manifest }) => manifest))) as unknown[];
    // kubectl passes over some of a file with an error.
    const isSame =
      theirs[index]?.errors === undefined
        ? isDeepStrictEqual(ours, kubectl)
        : kubectl.every((object) => ours.some((own) => isDeepStrictEqual(own, object)));
    if (!isSame) different.push({ text, ours, kubectl });
    read += kubectl.length;
  }
  expect(different).toEqual([]);
  expect(read).toBeGreaterThan(FILES / 10);
  expect(refused.size).toBeGreaterThan(30);
});
