import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { MARKER, renderMarkdown } from "../../src/cli/render-markdown";
import { renderText } from "../../src/cli/render-text";
import type { FieldChange, ResourcePlan } from "../../src/plan/resource-plan";
import { newReport, type ObjectPlan, objectsToFailOn, type Report, reportSchema } from "../../src/preview/report";
import { differencesOf } from "../../src/preview/wording";
import { safeJson } from "../../src/text/plain-text";

const row = (name: string, operation: ResourcePlan["operation"], fields: FieldChange[] = []): ResourcePlan => {
  return { name, type: "Row", operation, fields };
};

function plan(changes: Partial<ObjectPlan> = {}): ObjectPlan {
  return {
    ...{ apiVersion: "demo.yash.com/v1", kind: "PostgresWriter", namespace: "default", name: "alex" },
    stack: "postgreswriter.default.alex-0",
    action: "update",
    resources: [row("default/alex", "update", [{ path: "values.age", before: 23, after: 24 }])],
    errors: [],
    notes: [],
    ...changes,
  };
}

const reportOf = (objects: ObjectPlan[], changes: Partial<Report> = {}) => ({ ...newReport(objects), ...changes });

const deletion = plan({ name: "gone", action: "delete", resources: [row("default/gone", "delete")] });
const refused = plan({ name: "wrong", action: "invalid", resources: [], errors: ["spec.age: -1 must be >= 0"] });
const unchanged = plan({ name: "same", action: "none", resources: [] });

const TEXTS: [string, (report: Report) => string][] = [
  ["text", renderText],
  ["Markdown", renderMarkdown],
];

/** What would do harm in a terminal, in Markdown or in HTML. */
const HOSTILE =
  "\u001b[2J\u009b2J\r\n\u202e<script>alert(1)</script> </code></details> | `` ` **bold** [a](javascript:1) @team #1 ![](http://x/y.png) \\| x";

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const HARMFUL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;

/** What is left of Markdown without the code spans and the titles is our own. */
function withoutCode(markdown: string): string {
  return markdown
    .replace(/(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)/g, "")
    .replace(/<summary>.*<\/summary>/g, "")
    .replace(/<\/?details>|<!--.*-->/g, "");
}

it("the digests of a plan are whole in each form of a report that was made to propose", () => {
  const [digest, group] = ["1", "2"].map((digit) => `sha256:${digit.repeat(64)}`) as [string, string];
  const report = reportOf([plan({ digest, group }), unchanged]);
  for (const text of [renderText(report), renderMarkdown(report)]) {
    expect(text).toContain(`digest: ${digest}`);
    expect(text).toContain(`group: ${group}`);
  }
  expect(renderText(reportOf([plan()]))).not.toContain("digest");
});

describe("a report as text", () => {
  it("has the objects that matter most first, then each with its fields, then the sum", () => {
    expect(renderText(reportOf([unchanged, plan(), deletion, refused]))).toBe(
      [
        "KIND            NAME           ACTION   RESOURCES",
        "PostgresWriter  default/wrong  invalid",
        "PostgresWriter  default/gone   delete   1 to delete",
        "PostgresWriter  default/alex   update   1 to update",
        "PostgresWriter  default/same   none",
        "",
        "PostgresWriter default/wrong: invalid",
        "  error: spec.age: -1 must be >= 0",
        "",
        "PostgresWriter default/gone: delete",
        "  - delete Row default/gone",
        "",
        "PostgresWriter default/alex: update",
        "  ~ update Row default/alex",
        "      values.age: 23 → 24",
        "",
        "1 invalid, 1 to delete, 1 to update, 1 unchanged",
      ].join("\n"),
    );
  });

  it("says so when there is nothing", () => {
    expect(renderText(reportOf([]))).toBe("no objects");
  });

  it("tells of files that could not be read and of what limits it", () => {
    const text = renderText(reportOf([], { problems: [{ file: "a.yaml", message: "bad" }], notes: ["no cluster"] }));
    expect(text).toBe("error: a.yaml: bad\nnote: no cluster\n\n1 file unreadable");
  });
});

describe("what is created, and what could not be looked up", () => {
  const fields = Array.from({ length: 23 }, (_, index) => ({ path: `data.key${index}`, after: "v".repeat(100) }));
  const hidden = { ...row("hidden", "unchecked"), type: "Secret", notChecked: "whether it is created: no" };
  const resources = [{ ...row("new", "create", fields), type: "ConfigMap" }, hidden];
  const object = plan({ action: "unchecked", resources, errors: ["the object could not be looked up"] });
  const report = reportOf([object], { unchecked: ["what other objects have"], behind: ["HEAD lacks 1 commit"] });

  it.each(TEXTS)("has its values, twenty at most, and why, as %s", (_, render) => {
    const text = render(report);
    expect(text).toMatch(/data\.key19\W/);
    expect(text).not.toContain("data.key20");
    expect(text).toContain("… and 3 more fields");
    expect(text).not.toContain("v".repeat(81));
    const why = ["the object could not", "whether it is created: no", "what other objects have", "HEAD lacks 1 commit"];
    for (const told of ["1 unchecked", ...why]) expect(text).toContain(told);
  });
});

describe("a report as Markdown", () => {
  it("has a table of what happens, and the details folded", () => {
    expect(renderMarkdown(reportOf([plan(), unchanged, refused]))).toBe(
      `${MARKER}

**Kindstack:** 1 invalid, 1 to update, 1 unchanged

| | kind | name | resources |
|---|---|---|---|
| ❌ **invalid** | \`PostgresWriter\` | \`default/wrong\` | \`spec.age: -1 must be >= 0\` |
| ✏️ update | \`PostgresWriter\` | \`default/alex\` | 1 to update |

<details>
<summary>invalid <code>PostgresWriter default/wrong</code></summary>

- \`spec.age: -1 must be >= 0\`

</details>

<details>
<summary>update <code>PostgresWriter default/alex</code></summary>

- update \`Row default/alex\`
  - \`values.age\`: \`23\` → \`24\`

</details>
`,
    );
  });

  it("fits into a comment, however much there is to say", () => {
    const before = "x".repeat(5000);
    const fields = Array.from({ length: 50 }, (_, index) => ({ path: `field${index}`, before, after: 1 }));
    const resources = [row("a", "update", fields)];
    const objects = Array.from({ length: 300 }, (_, index) => plan({ name: `writer-${index}`, resources }));
    const markdown = renderMarkdown(reportOf(objects));
    expect(markdown.length).toBeLessThan(65_536);
    expect(markdown).toContain("… and 200 more objects.");
    expect(markdown).toMatch(/the details of \d+ more objects are left out/);
  });

  it("fits also with long errors, and with notes and files without end", () => {
    const long = (index: number) => `${index} ${"|".repeat(5000)}`;
    const all = Array.from({ length: 300 }, (_, index) => index);
    const objects = all.map((index) => plan({ name: `writer-${index}`, action: "failed", errors: [long(index)] }));
    const problems = all.map((index) => ({ file: long(index), message: long(index) }));
    const rest = { problems, notes: all.map(long), unseenDeletions: all.map(long) };
    const markdown = renderMarkdown(reportOf(objects, rest));
    expect(markdown.length).toBeLessThan(65_536);
    expect(markdown).toContain("300 failed");
    expect(markdown).toMatch(/… and \d+ more objects\./);
  });
});

it.each(TEXTS)("a change within a long value is shown where it is, as %s", (_, render) => {
  const long = "x".repeat(500);
  const field = { path: "data.text", before: `${long}a${long}`, after: `${long}b${long}` };
  const text = render(reportOf([plan({ resources: [row("c", "update", [field])] })]));
  expect(text).toMatch(/…x{15}ax+….* → .*…x{15}bx+…/);
});

it("a long text in Markdown is cut between two characters", () => {
  for (const length of [280, 281]) {
    const text = `${"x".repeat(length)}${"😀".repeat(20)}`;
    expect(renderMarkdown(reportOf([plan({ name: text, errors: [text] })])).isWellFormed()).toBe(true);
  }
});

describe("what objects and files say", () => {
  const fields = [{ path: HOSTILE, before: HOSTILE, after: { [HOSTILE]: HOSTILE } }];
  const resources = [{ ...row(HOSTILE, "update", fields), type: HOSTILE }];
  const object = plan({ kind: HOSTILE, name: HOSTILE, errors: [HOSTILE], notes: [HOSTILE], resources });
  const hostile = reportOf([object], { problems: [{ file: HOSTILE, message: HOSTILE }], notes: [HOSTILE] });
  it.each([...TEXTS, ["JSON", safeJson]] as const)("has no effect on a terminal, as %s", (_, render) => {
    expect(render(hostile)).not.toMatch(HARMFUL);
  });

  it("is the same in JSON after all", () => {
    expect(JSON.parse(safeJson(hostile))).toEqual(hostile);
  });

  it("is nothing but code in Markdown", () => {
    const markdown = renderMarkdown(hostile);
    expect(withoutCode(markdown)).not.toMatch(/[<>[\]@#\\!]|script|bold/);
    expect(markdown).toMatch(/<summary>update <code>[^<>"']*<\/code><\/summary>/);
  });
});

describe("a report by differences", () => {
  const renamed = (name: string, after: number) =>
    plan({ name, resources: [row(name, "update", [{ path: "values.age", before: 23, after }])] });
  const failing = (name: string) =>
    plan({ name, action: "failed", resources: [], errors: [`Row default/${name}: ${name} is wrong`] });

  it("has the values that all objects of a group have in common, and groups failures whatever the objects are called", () => {
    const objects = [renamed("b", 1), renamed("a", 2), failing("c"), failing("d"), unchanged];
    const updated = { operation: "update", type: "Row", count: 1, fields: [{ path: "values.age" }] };
    expect(differencesOf(objects).map(({ action, objects: names, resources }) => [action, names, resources])).toEqual([
      ["failed", ["default/c", "default/d"], []],
      ["update", ["default/a", "default/b"], [updated]],
      ["none", ["default/same"], []],
    ]);
    const [same] = differencesOf([renamed("a", 1), renamed("b", 1)]);
    expect(same?.resources[0]?.fields).toEqual([{ path: "values.age", before: 23, after: 1 }]);
  });

  it("names all objects but on a terminal, where it says how many more there are", () => {
    const objects = Array.from({ length: 25 }, (_, index) => renamed(`n${index}`, 1));
    const report = reportOf(objects, { differences: differencesOf(objects) });
    expect(renderText(report)).toContain(" and 5 more");
    expect(objects.every(({ name }) => renderMarkdown(report).includes(`\`default/${name}\``))).toBe(true);
  });

  it("shows hostile texts as what they are", () => {
    const objects = [plan({ kind: HOSTILE, name: HOSTILE, errors: [HOSTILE], resources: [] }), plan({ kind: HOSTILE })];
    const report = reportOf([], { differences: differencesOf(objects) });
    expect(renderText(report)).not.toMatch(HARMFUL);
    const rows = renderMarkdown(report)
      .split("\n")
      .filter((line) => line.startsWith("|"));
    expect(rows.map((line) => line.split("|").length)).toEqual([6, 6, 6, 6]);
    expect(withoutCode(renderMarkdown(report))).not.toMatch(/[<>[\]@#\\!]|script|bold/);
  });
});

it("the gates see what happens to an object and to its resources", () => {
  const losing = plan({ name: "losing", resources: [row("a", "delete")] });
  const report = reportOf([plan(), losing, deletion, unchanged]);
  expect(objectsToFailOn(report, ["delete"]).map(({ name }) => name)).toEqual(["losing", "gone"]);
  expect(objectsToFailOn(report, ["replace"])).toEqual([]);
  expect(objectsToFailOn(report, [])).toEqual([]);
});

it("the published schema is that of the reports", () => {
  const published = readFileSync(join(__dirname, "../../docs/preview.schema.json"), "utf8");
  expect(JSON.parse(published)).toEqual({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    ...JSON.parse(JSON.stringify(reportSchema)),
  });
});
