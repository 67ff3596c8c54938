import fc from "fast-check";
import { RE2JS } from "re2js";
import { expect, it } from "vitest";
import { TerminalError } from "../../../../providers/errors";
import { keyRules, refusedKeys } from "../../../../stacks/kinds/capsule-tenant/namespace-metadata";
import { anyCharacter } from "../../../characters";
import { oilTenant } from "./objects";

const forbidding = (denied: string[]) => oilTenant({ namespacesMetadata: { forbiddenLabels: { denied } } });

const keys = fc.string({ unit: anyCharacter, minLength: 1 }).filter((key) => key === key.trim());

it("says what is wrong with an expression in an annotation of the Tenant, which the API server does not check", () => {
  const tenant = oilTenant();
  tenant.metadata.annotations = { "capsule.clastix.io/forbidden-namespace-labels-regexp": "(" };
  const refused = () => refusedKeys(tenant, "labels", ["team"]);
  expect(refused).toThrow(TerminalError);
  expect(refused).toThrow(/annotation.*forbidden-namespace-labels-regexp.*oil.*missing closing/);
});

it("forbids a key that is named exactly, whatever its characters, and no other", () => {
  fc.assert(
    fc.property(keys, keys, (key, other) => {
      const { forbidden } = keyRules(forbidding([key]), "labels");
      expect(Buffer.from(forbidden).toString() === forbidden).toBe(true);
      expect(RE2JS.compile(forbidden).matcher(other).find()).toBe(key === other);
      expect(refusedKeys(forbidding([key]), "labels", [key])).toEqual([key]);
    }),
    {
      seed: 20261122,
      numRuns: 40, // each compiles a pattern
      examples: [
        ["💬", "💭"],
        ["a.b", "a-b"],
      ],
    },
  );
});
