import { readFileSync } from "node:fs";
import Type from "typebox";
import { describe, expect, it } from "vitest";
import { exampleOf, kindPage, pageName } from "../../src/scaffold/kind-page";
import { defineKind } from "../../stacks/contract/index";
import { sampleOf } from "../../stacks/kinds/catalog";
import { kinds } from "../../stacks/kinds/index";

const notice = defineKind({
  group: "example.com",
  version: "v1",
  kind: "Notice",
  plural: "notices",
  singular: "notice",
  shortNames: ["no"],
  scope: "Namespaced",
  description: "A text in a ConfigMap.",
  spec: Type.Object(
    {
      text: Type.String({ description: "What it says.", minLength: 1 }),
      tone: Type.Optional(Type.Enum(["calm", "loud|proud"], { default: "calm" })),
      places: Type.Array(Type.Object({ name: Type.String() }), { maxItems: 3 }),
      marks: Type.Record(Type.String(), Type.Integer({ minimum: 0 })),
    },
    { "x-kubernetes-validations": [{ rule: "self.text != ''", message: "text must say something" }] },
  ),
  status: Type.Object({}),
  columns: [],
  owns: [{ apiVersion: "v1", kind: "ConfigMap" }],
  directory: __dirname,
  program: () => {},
  report: () => ({}),
});

describe("the page of a kind", () => {
  const page = kindPage(notice, "kind: Notice\n");

  it("names the kind, what it makes, and an example", () => {
    expect(page).toContain("# Notice\n\nA text in a ConfigMap.");
    expect(page).toContain("| kubectl | `kubectl get notices.example.com`, `no` |");
    expect(page).toContain("| makes | `ConfigMap` |");
    expect(page).toContain("```yaml\nkind: Notice\n```");
    expect(pageName(notice)).toBe("notices.example.com.md");
  });

  it.each([
    "| `text` | string | required | What it says. Shortest length: `1`. |",
    '| `tone` | string | `"calm"` | One of `"calm"`, `"loud\\|proud"`. |',
    "| `places` | list of object | required | Most items: `3`. |",
    "| `places[].name` | string | required |  |",
    "| `marks` | map of integer | required |  |",
    "- text must say something.",
    "| Synced | whether the last update succeeded |",
  ])("has the line %s", (line) => {
    expect(page.split("\n")).toContain(line);
  });

  it("has the kind's own conditions", () => {
    const own = { ...notice, capabilities: { conditionTypes: { Printed: "the text is on paper" } } };
    expect(kindPage(own, undefined)).toContain("| Printed | the text is on paper |");
  });

  it("has of a package's samples those of the kind", () => {
    const ticket = { ...notice, kind: "Ticket", plural: "tickets" };
    const [notices, tickets, secret] = ["Notice", "Ticket", "Secret"].map(
      (name) => `apiVersion: ${name === "Secret" ? "v1" : "example.com/v1"}\nkind: ${name}\n`,
    ) as [string, string, string];
    const both = [notices, tickets, secret, notices].join("---\n");

    expect(exampleOf(notice, [notice, ticket], both)).toBe(`${notices}---\n${notices}`);
    expect(exampleOf(ticket, [notice, ticket], both)).toBe(tickets);
    expect(exampleOf(ticket, [notice, ticket], notices)).toBeUndefined();
    // What the kind's object needs.
    expect(exampleOf(notice, [notice, ticket], `${secret}---\n${notices}`)).toBe(`${secret}---\n${notices}`);
  });

  it.each(kinds.map((kind) => [kind.kind + kind.group, kind] as const))("is whole for a %s", (_, kind) => {
    const sample = sampleOf(kind);
    const text = kindPage(kind, sample && readFileSync(sample, "utf8"));
    for (const field of Object.keys((kind.spec as Type.TObject).properties)) expect(text).toContain(`| \`${field}\` |`);
    expect(text).not.toMatch(/undefined|\[object/);
  });
});
