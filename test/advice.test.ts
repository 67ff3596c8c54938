import fs from "node:fs";
import path from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { packageRoot } from "../src/package";
import { filesUnder } from "./files";
import { parseModule } from "./prose";

/*
 * A message that advises to delete, remove or release something, to write into records, or to run a command, is followed to
 * the end by a test: what it says may be done at once, by someone who is in a hurry.
 */

/** A part of each such message, the file of the test that follows it, and a part of the test's name. */
const FOLLOWED: readonly [advice: string, file: string, test: string][] = [
  [
    "to remove this kind alone, release it first: kubectl label",
    "stacks/platform/installation.integration.test.ts",
    "as the message says",
  ],
  [
    "Use that one, or delete the file",
    "automation/engine-process.integration.test.ts",
    "until its file is deleted, as the message says",
  ],
  ["An orphaned stack is left by", "e2e/orphaned-stacks.test.ts", "are destroyed by Pulumi's CLI"],
  ["needs the CRDs of plans and approvals", "e2e/propose-without-plans.test.ts", "is applied once they are there"],
  ["run `pulumi cancel --stack", "e2e/automation-api.slow.test.ts", "names the command that removes a stale lock"],
  [
    "To allow its deletion, run: kindstack state unprotect",
    "e2e/own-kinds.test.ts",
    "is said with the way out, which allows it",
  ],
  [
    "if that owner is gone, remove the label",
    "e2e/tenant-conflict.test.ts",
    "continues when a label in its way is taken off",
  ],
  [
    "To move it with all that is in it",
    "e2e/tenant-conflict.test.ts",
    "gets it with all that is in it, as the message",
  ],
  [
    "let the object have the row, which overwrites it",
    "providers/postgres/tables.integration.test.ts",
    "is adopted with the SQL",
  ],
  [
    "delete that object with the deletion policy Orphan",
    "providers/postgres/row.integration.test.ts",
    "which keeps the row",
  ],
  ["if that cluster is gone, transfer the row", "providers/postgres/row.integration.test.ts", "KINDSTACK_CLUSTER"],
  [
    "if that object is gone, transfer the row",
    "providers/postgres/row.integration.test.ts",
    "handed over as the message says",
  ],
  ["has taken its place with all rows, run", "providers/postgres/tables.integration.test.ts", "with both ways out"],
  [
    "Give Kindstack's role a policy",
    "providers/postgres/tables.integration.test.ts",
    "that hides the row makes a deletion fail",
  ],
  [
    "delete it, and apply the installation again",
    "stacks/platform/lost-policies.integration.test.ts",
    "for (const one of [audited, narrowed]) await remove(one)",
  ],
  ["to delete them too, set false and run", "stacks/platform/program.test.ts", "is, unless told otherwise, the state"],
  ["To take it over, pause it first", "e2e/hand-over.ts", '[PAUSED_ANNOTATION]: "true"'],
  [
    "Forget when the object is deleted, delete what carries its mark",
    "e2e/missing-state.test.ts",
    "is not deleted, unless a user decides to forget it",
  ],
  ["to Recreate, or to Forget and delete the object", "e2e/missing-state.test.ts", 'decide(key, "Recreate")'],
  [
    "Raise spec.namespaceQuota, or delete",
    "stacks/kinds/capsule-tenant/program.test.ts",
    "until there is room for them",
  ],
];
/** Texts with such words that advise nothing of the sort. */
const HARMLESS = [
  "describe it in docs/kinds.md and run npm test",
  "lock, load, run, save",
  "which is not there: remove the reference", // from a program: nothing was written with it
  "that came at once where one is allowed, delete the younger one", // what a key of the installation does
  "is reserved for Kubernetes; take a domain of yours",
  "take the backend's URL from the key backendUrl",
];

const VERBS =
  "cancel|clear|delete|drop|force|kill|move|overwrite|pause|release|remove|rename|replace|reset|run|stop|take|transfer|unlock|unprotect|use another|deletion-policy";
const ADVICE = new RegExp(
  `(?:^|[:;.,(]\\s+|\\b(?:or|and|first|then|to .*,) )\`?(?:${VERBS})\\b|kindstack.dev/deletion-policy`,
  "i",
);
/** Where texts describe what something is for, and advise nothing. */
const DESCRIPTIONS = ["argument", "command", "counter", "description", "gauge", "option", "Option", "usage"];

function adviceIn(file: string): string[] {
  const tree = parseModule(fs.readFileSync(file, "utf8"));
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAssignment(node) && DESCRIPTIONS.includes(node.name.getText(tree))) return;
    if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
      const callee = node.expression;
      const name = ts.isPropertyAccessExpression(callee) ? callee.name : callee;
      if (DESCRIPTIONS.includes(name.getText(tree))) {
        visit(callee);
        return;
      }
    }
    const text = textOf(node);
    if (text === undefined) ts.forEachChild(node, visit);
    else if (/[a-z] [a-z…]/.test(text) && ADVICE.test(text)) found.push(text.replace(/\s+/g, " "));
  };
  visit(tree);
  return found;
}

/** A text, also one of several parts; `…` for what is put into it. */
function textOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node)) {
    return node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join("");
  }
  if (!ts.isBinaryExpression(node) || node.operatorToken.kind !== ts.SyntaxKind.PlusToken) return undefined;
  const [left, right] = [textOf(node.left), textOf(node.right)];
  return left === undefined && right === undefined ? undefined : `${left ?? "…"}${right ?? "…"}`;
}

const advice = ["src", "providers", "stacks"].flatMap((folder) =>
  filesUnder(path.join(packageRoot, folder))
    .filter((file) => file.endsWith(".ts"))
    .flatMap(adviceIn),
);

describe("advice in messages that could lose something", () => {
  it.each(advice.filter((text) => !HARMLESS.some((part) => text.includes(part))))(
    "is followed by a test: %s",
    (text) => {
      const followed = FOLLOWED.find(([part]) => text.includes(part));
      if (followed === undefined) throw new Error("it needs a line in FOLLOWED");
      const [, file, test] = followed;
      expect(fs.readFileSync(path.join(packageRoot, "test", file), "utf8")).toContain(test);
    },
  );

  it("is not listed when it is gone", () => {
    const listed = [...FOLLOWED.map(([part]) => part), ...HARMLESS];
    expect(listed.filter((part) => !advice.some((text) => text.includes(part)))).toEqual([]);
  });
});
