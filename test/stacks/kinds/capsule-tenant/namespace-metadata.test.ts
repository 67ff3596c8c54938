import fc from "fast-check";
import { RE2JS } from "re2js";
import { expect, it } from "vitest";
import { keyRules, refusedKeys } from "../../../../stacks/kinds/capsule-tenant/namespace-metadata";
import { anyCharacter } from "../../../characters";
import { oilTenant } from "./objects";

const forbidding = (denied: string[]) => oilTenant({ namespacesMetadata: { forbiddenLabels: { denied } } });

const keys = fc.string({ unit: anyCharacter, minLength: 1 }).filter((key) => key === key.trim());

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
