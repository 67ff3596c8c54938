import fs from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import { beforeAll, describe, expect, it } from "vitest";
import { buildProgram } from "../src/cli/program";
import { packageRoot } from "../src/package";
import { tools } from "../src/toolchain/tools";
import { configurationSchema } from "../stacks/platform/configuration";
import { filesUnder } from "./files";

/* What no test runs of a page is held to names that exist. Names are those in code: `like this`, and in blocks. */

const PAGES = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", ...markdownIn("docs")].filter(
  (page) => page !== "docs/api.md", // generated from the code
);
const SOURCES = [
  "src",
  "providers",
  "stacks",
  "bench",
  "tools",
  "templates",
  "deploy",
  ".github",
  "docs/examples",
  "test/node",
].flatMap((folder) =>
  filesUnder(path.join(packageRoot, folder)).filter((file) => /\.(ts|go|mjs|json|ya?ml|lua|sql)$/.test(file)),
);
const CODE = SOURCES.map((file) => fs.readFileSync(file, "utf8")).join("\n");
const WORDS = new Set(CODE.match(/[\w-]+/g));
const TEXTS = new Set(CODE.match(/[\w./-]*\w/g));
const FILES = ["src", "providers", "stacks", "bench", "tools/engine"].flatMap((folder) =>
  filesUnder(path.join(packageRoot, folder)),
);
/** Pages whose paths are those of a package of the reader's. */
const OF_A_PACKAGE = ["docs/write-a-kind.md", "docs/write-a-provider.md"];
/** Options of other programs, where a page names them alone. */
const OPTIONS_OF_OTHERS = [
  "--admission-control-config-file", // kube-apiserver
  "--authentication-config", // kube-apiserver
  "--quota-backend-bytes", // etcd
  "--protected-namespace-regex", // Capsule
  ...["--cascade", "--force-conflicts", "--as"], // kubectl
  "--take-ownership", // helm
  ...["--force", "--path", "--plaintext", "--yes"], // helm, pulumi
];

interface Page {
  name: string;
  text: string;
  /** What stands in backquotes and in blocks, without what commands print. */
  codes: string[];
}

function pageOf(name: string, text: string): Page {
  const blocks = [...text.matchAll(/^ *```\w+\n([\s\S]*?)^ *```$/gm)].map(([, block = ""]) => block);
  const spans = text.replace(/^ *```[\s\S]*?^ *```$/gm, "").matchAll(/`([^`\n]+)`/g);
  return { name, text, codes: [...[...spans].map(([, code = ""]) => code), ...blocks] };
}

const inCode = (pattern: RegExp) => (page: Page) =>
  page.codes.flatMap((code) => [...code.matchAll(pattern)].map(([all, first]) => first ?? all));
const isWord = (name: string) => WORDS.has(name);
const isText = (name: string) => TEXTS.has(name);

/** What kinds of names there are, where pages have them, and whether one exists. */
const NAMES: [what: string, find: (page: Page) => string[], exists: (name: string, page: Page) => boolean][] = [
  [
    "files",
    ({ text }) =>
      text.match(/(?<![\w/.-])(?:src|providers|stacks|test|bench|tools|deploy|templates)\/[\w./-]*\w/g) ?? [],
    (name, page) =>
      (OF_A_PACKAGE.includes(page.name) && /^(src|test)\//.test(name)) || fs.existsSync(path.join(packageRoot, name)),
  ],
  [
    "modules",
    (page) => (page.name === "CONTRIBUTING.md" ? inCode(/^[\w/-]+\.(?:ts|go)$/g)(page) : []),
    (name) => fs.existsSync(path.join(packageRoot, name)) || FILES.some((file) => file.endsWith(`/${name}`)),
  ],
  [
    "annotations and labels",
    inCode(/(?:[a-z-]+\.)*(?:kindstack\.dev|capsule\.clastix\.io)\/[a-z][\w-]*\w/g),
    isComposed,
  ],
  ["policies and webhooks", inCode(/\b[a-z]+(?:\.[a-z]+)*\.(?:capsule\.clastix\.io|kindstack\.dev)\b(?!\/)/g), isText],
  ["metrics", inCode(/\b(?:kindstack|workqueue|controller_runtime)_[a-z_]*[a-z]/g), isText],
  ["environment variables", inCode(/\b(?:KINDSTACK|PSQL|PULUMI|MEMCACHED)_[A-Z_]*[A-Z]\b/g), isVariable],
  ["conditions", inCode(/--for=condition=(\w+)/g), isWord],
  ["fields", inCode(/\b(?:spec|status|capabilities)\.([a-z]\w*)/g), isWord],
  ["fields within fields", inCode(/\b(?:spec|status|capabilities)\.\w+\.([a-z]\w*)/g), isWord],
  ["keys of the installation", inCode(/(?:--set[ =]|kindstack:)([a-z]\w+)(?:=| |\[)/g), isKey],
  [
    "keys of the installation, in the text",
    ({ text }) => [...text.matchAll(/\bthe keys? `([a-z]\w+)`/g)].map(([, key = ""]) => key),
    (name) => isKey(name) || isWord(name), // or of a Secret, or of package.json
  ],
  ["npm scripts", inCode(/\bnpm run (?:-s )?([\w:]+)/g), isScript],
  [
    "reasons",
    ({ text }) =>
      [...text.matchAll(/^\| ((?:`[A-Z][A-Za-z]+`(?:, | and )?)+) \|/gm)].flatMap(
        ([, cell = ""]) => cell.match(/\w\w+/g) ?? [],
      ),
    (name) => isWord(name) || name === "and",
  ],
];

describe.each(NAMES)("%s that pages name", (_, find, exists) => {
  it("exist", () => {
    const pages = PAGES.map((name) => pageOf(name, fs.readFileSync(path.join(packageRoot, name), "utf8")));
    const found = pages.flatMap((page) => find(page).map((name) => ({ page, name })));
    expect(found.length).toBeGreaterThan(0);
    const missing = found.filter(({ page, name }) => !exists(name, page));
    expect([...new Set(missing.map(({ page, name }) => `${page.name}: ${name}`))]).toEqual([]);
  });
});

describe("commands that pages name", () => {
  let program: Command;
  beforeAll(async () => {
    program = await buildProgram();
  });

  it.each(PAGES)("exist, with their options: %s", (page) => {
    const { codes } = pageOf(page, fs.readFileSync(path.join(packageRoot, page), "utf8"));
    expect(codes.flatMap((code) => unknownIn(code, program))).toEqual([]);
  });

  it.each([
    ["npx kindstack histories podsets a", ["kindstack histories"]],
    ["npx kindstack state lose podsets a", ["kindstack state lose"]],
    [
      "npx kindstack preview -f a --server b \\\n  --tokenfile c | jq --raw-output .",
      ["kindstack preview --tokenfile"],
    ],
    ["--no-such-option", ["--no-such-option"]],
    ["npx kindstack state unlock podsets a -n b", []],
  ])("are found where they do not exist: %s", (code, unknown) => {
    expect(unknownIn(code, program)).toEqual(unknown);
  });
});

it("names that do not exist are found, in text and in blocks", () => {
  const page = pageOf("docs/a.md", "`kindstack.dev/pause` and test/none.test.ts\n\n```sh\nnpm run none\n```\n");
  const missing = NAMES.flatMap(([what, find, exists]) =>
    find(page).flatMap((name) => (exists(name, page) ? [] : [`${what}: ${name}`])),
  );
  expect(missing).toEqual([
    "files: test/none.test.ts",
    "annotations and labels: kindstack.dev/pause",
    "npm scripts: none",
  ]);
});

/** The commands of Kindstack in a piece of code that do not exist, or not with the options that they are given. */
function unknownIn(code: string, program: Command): string[] {
  const [alone] = /^--[a-z][a-z-]+/.exec(code) ?? [];
  if (alone !== undefined) return isOption(alone, program) || OPTIONS_OF_OTHERS.includes(alone) ? [] : [alone];
  const commands = code.replaceAll("\\\n", " ").matchAll(/(?<![\w/-])kindstack ([a-z][a-z-]*[^|\n;&#)]*)/g);
  return [...commands].flatMap(([, given = ""]) => {
    const words = given.split(/\s+/).filter((word) => word !== "");
    let command = program;
    let name = "kindstack";
    while (command.commands.length > 0 && words[0] !== undefined && !words[0].startsWith("-")) {
      const next = command.commands.find((one) => one.name() === words[0]);
      name += ` ${words.shift()}`;
      if (next === undefined) return [name];
      command = next;
    }
    const options = words.flatMap((word) => /^--[a-z][a-z-]+/.exec(word) ?? []);
    return options
      .filter((option) => option !== "--help" && !has(command, option))
      .map((option) => `${name} ${option}`);
  });
}

function isOption(name: string, command: Command): boolean {
  return has(command, name) || command.commands.some((one) => isOption(name, one));
}

function has(command: Command, option: string): boolean {
  return command.options.some(({ long }) => long === option);
}

/** Also where the code puts it together: `quota.capsule.clastix.io/${resource}`. */
function isComposed(name: string): boolean {
  return isText(name) || CODE.includes(name.replace(/[^/-]*$/, "${"));
}

function isVariable(name: string): boolean {
  const tool = name
    .replace(/^KINDSTACK_/, "")
    .toLowerCase()
    .replaceAll("_", "-");
  return isWord(name) || tool in tools;
}

function isKey(name: string): boolean {
  return name in configurationSchema.properties;
}

function isScript(name: string, { name: page }: Page): boolean {
  const file = OF_A_PACKAGE.includes(page) ? "templates/kind/package.json" : "package.json";
  const { scripts } = JSON.parse(fs.readFileSync(path.join(packageRoot, file), "utf8")) as { scripts: object };
  return name in scripts;
}

function markdownIn(folder: string): string[] {
  const files = fs.readdirSync(path.join(packageRoot, folder)).filter((file) => file.endsWith(".md"));
  return files.map((file) => `${folder}/${file}`);
}
