import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { REASONS } from "../providers/reasons";
import { tools } from "../src/toolchain/tools";
import { kinds } from "../stacks/kinds/index";
import { declaredObjects } from "../stacks/up/objects";
import { type Block, blocksOf } from "./e2e/blocks";
import { filesUnder } from "./files";

const ROOT = path.resolve(__dirname, "..");
const PAGES = fs.readdirSync(path.join(ROOT, "docs")).filter((file) => file.endsWith(".md"));
/** In lines. */
const THREE_SCREENS = 150;
const README_SECTIONS = ["Try it", "Run it against your cluster", "Preview in a pull request", "Install"];

describe("the documentation", () => {
  it("has commands in blocks that are run, or say why they cannot be", () => {
    const pages = ["README.md", ...PAGES.map((page) => `docs/${page}`)];
    const languages = new Set(pages.flatMap(blocksOf).map(({ language }) => language));
    expect([...languages].sort()).toEqual(["", "sh", "sql", "ts", "yaml"]); // the first is what commands print
    const followed = fs.readFileSync(path.join(ROOT, "test/e2e/pages.slow.test.ts"), "utf8");
    for (const page of PAGES.filter((page) => blocksOf(`docs/${page}`).some(isRun))) {
      expect(followed, `${page} is followed by a test`).toContain(`followPage("docs/${page}"`);
    }
    const commands = blocksOf("README.md").filter(isRun);
    expect([...new Set(commands.map(({ section }) => section))]).toEqual(README_SECTIONS);
  });

  it("says where Pulumi's CLI comes from on each page that runs it, and the version of its SDK", () => {
    const runs = ["README.md", ...PAGES.map((page) => `docs/${page}`)].filter((page) =>
      blocksOf(page).some(({ language, text }) => language === "sh" && /^\s*pulumi /m.test(text)),
    );
    expect(runs).toContain("docs/hand-over.md");
    for (const page of runs) {
      const text = fs.readFileSync(path.join(ROOT, page), "utf8");
      expect(text, page).toMatch(/\]\(((docs\/)?install\.md)?#pulumis-cli\)/);
    }
    const install = fs.readFileSync(path.join(ROOT, "docs/install.md"), "utf8");
    const [, version] = /--version (\S+)/.exec(install) ?? [];
    expect(version).toBe(tools.pulumi.version);
  });

  it("shows objects that their kinds take", async () => {
    const manifests = ["docs/kinds.md", "docs/capsule.md"].flatMap((page) =>
      blocksOf(page)
        .filter(({ language, text }) => language === "yaml" && text.startsWith("apiVersion:"))
        .map(({ text, line }) => ({ manifest: parse(text), file: `${page}:${line}` })),
    );

    expect(await declaredObjects(manifests, kinds, "any", "default")).toHaveLength(kinds.length);
  });

  it.each(["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", ...PAGES.map((page) => `docs/${page}`)])(
    "has links that lead somewhere: %s",
    (page) => {
      const text = fs.readFileSync(path.join(ROOT, page), "utf8");
      const links = [...text.matchAll(/\]\(([^)#:\s]*)(?:#([^)\s]*))?(?: "[^"]*")?\)/g)].map(
        ([, file = "", anchor]) => ({
          file,
          anchor,
        }),
      );
      const broken = links.filter(({ file, anchor }) => {
        const target = file === "" ? path.join(ROOT, page) : path.resolve(ROOT, path.dirname(page), file);
        if (!fs.existsSync(target)) return true;
        return anchor !== undefined && !anchorsOf(fs.readFileSync(target, "utf8")).includes(anchor);
      });
      expect(broken).toEqual([]);
    },
  );

  it.each(["README.md", "SECURITY.md", "CONTRIBUTING.md", ...PAGES.map((page) => `docs/${page}`)])(
    "has a table of contents where a page is longer than three screens: %s",
    (page) => {
      const text = fs
        .readFileSync(path.join(ROOT, page), "utf8")
        .replaceAll(/^```.*?^```$/gms, (block) => block.replaceAll("#", ""));
      const sections = [...text.matchAll(/^## .*$/gm)];
      const head = text.slice(0, sections[0]?.index);
      const missing = sections
        .flatMap(([heading]) => anchorsOf(heading))
        .filter((anchor) => !head.includes(`(#${anchor})`));
      expect(text.split("\n").length > THREE_SCREENS ? missing : []).toEqual([]);
    },
  );

  it("names a test for each attempt in SECURITY.md, and each exists", () => {
    const page = fs.readFileSync(path.join(ROOT, "SECURITY.md"), "utf8");
    const rows = page.split("\n").filter((line) => /^\| (?!---)/.test(line) && line.includes("test.ts"));
    expect(rows.length).toBeGreaterThan(35);
    expect(rows.filter((row) => !row.includes('.test.ts "'))).toEqual([]);
    const named = [...page.matchAll(/\]\((\S+\.test\.ts) "([^"]*)"\)/g)].map(([, file = "", title = ""]) => ({
      file,
      title,
    }));
    const missing = named.filter(({ file, title }) => !fs.readFileSync(path.join(ROOT, file), "utf8").includes(title));
    expect(missing).toEqual([]);
    expect(named.length).toBeGreaterThanOrEqual(rows.length);
  });

  it("names fault tests that exist, and each that searches for faults", () => {
    const page = fs.readFileSync(path.join(ROOT, "docs/reliability.md"), "utf8");
    const rows = page.split("\n").filter((line) => /^\| (?!---|fault )/.test(line));
    const named = rows.flatMap((row) =>
      [...(row.split(" | ").at(-1) ?? "").matchAll(/`([a-z][\w.-]*)`/g)].map(([, test]) => test),
    );
    const tests = filesUnder(path.join(ROOT, "test")).map((file) => path.basename(file));
    expect(named.filter((test) => !tests.includes(`${test}.test.ts`))).toEqual([]);
    const searches = tests.filter(
      (file) => fs.existsSync(path.join(ROOT, "test/faults", file)) && file.endsWith(".test.ts"),
    );
    expect(searches.filter((file) => !page.includes(`\`${file.slice(0, -".test.ts".length)}\``))).toEqual([]);
  });

  it("explains each environment variable", () => {
    const page = fs.readFileSync(path.join(ROOT, "docs/configuration.md"), "utf8");
    const code = sourcesIn("src", "providers", "stacks").map((file) => fs.readFileSync(file, "utf8"));
    const variables = code.flatMap((text) => text.match(/\b(KINDSTACK|PSQL|PGSSL|MEMCACHED)_?[A-Z_]*[A-Z]\b/g) ?? []);
    expect(variables).toContain("KINDSTACK_WORK_DIR");
    const isExplained = (variable: string) => page.includes(`\`${variable}\``) || ONLY_OF_TESTS.includes(variable);
    expect([...new Set(variables)].filter((variable) => !isExplained(variable))).toEqual([]);
  });

  it("explains each reason", () => {
    const page = fs.readFileSync(path.join(ROOT, "docs/troubleshooting.md"), "utf8");
    expect(REASONS.filter((reason) => !page.includes(`\`${reason}\``))).toEqual([]);
    expect(REASONS.filter((reason, index) => REASONS.indexOf(reason) !== index)).toEqual([]);
  });

  it("has no reason in the code that is not in the list of reasons", () => {
    const reasons = reasonsInCode();
    expect(reasons).toEqual(expect.arrayContaining(["Cordoned", "Succeeded", "BackOff"]));
    expect(reasons.filter((reason) => !(REASONS as readonly string[]).includes(reason))).toEqual([]);
  });

  it("lists no reason that nothing gives", () => {
    const sources = sourcesIn("src", "providers", "stacks").filter((file) => !file.endsWith("providers/reasons.ts"));
    const words = new Set(sources.flatMap((file) => fs.readFileSync(file, "utf8").match(/\w+/g) ?? []));
    expect(REASONS.filter((reason) => !words.has(reason))).toEqual([]);
  });
});

function isRun({ language, notRun }: Block): boolean {
  return language === "sh" && notRun === undefined;
}

function anchorsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}

function sourcesIn(...folders: string[]): string[] {
  return folders.flatMap((folder) => filesUnder(path.join(ROOT, folder))).filter((file) => file.endsWith(".ts"));
}

/** The reasons of conditions in the code; those of errors are checked by the compiler. */
function reasonsInCode(): string[] {
  const code = sourcesIn("src/controller", "src/operator", "stacks")
    .filter((file) => !file.includes("/policies/"))
    .map((file) => fs.readFileSync(file, "utf8"));
  const patterns = [/\breason(?:: | = |: \w+ \? )"([A-Z]\w+)"/g, /\breason: \w+ \? "\w+" : "([A-Z]\w+)"/g];
  const found = code.flatMap((text) =>
    patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, reason = ""]) => reason)),
  );
  return [...new Set(found)].filter((reason) => !EVENT_REASONS.includes(reason)).sort();
}

/** Tools that only tests call for, and a prefix. */
const ONLY_OF_TESTS = [
  "KINDSTACK_KSTATUS",
  "KINDSTACK_PROMTOOL",
  "KINDSTACK_PULUMI",
  "KINDSTACK_PULUMI_LANGUAGE_NODEJS",
  "KINDSTACK_HELM",
  "KINDSTACK_VERSITYGW",
  "KINDSTACK_FAKE_GCS_SERVER",
  "KINDSTACK",
  "PSQL",
];

/** Of Events alone. */
const EVENT_REASONS = ["Updated", "Repaired", "Orphaned"];
