import { describe, expect, it } from "vitest";
import type { ManagedFieldsEntry } from "../../providers/kubernetes/types";
import { appliedMetadata } from "../../src/preview/applied-metadata";
import { applied, liveObject } from "../objects";

const annotations = (...keys: string[]) => ({
  "f:metadata": { "f:annotations": Object.fromEntries(keys.map((key) => [`f:${key}`, {}])) },
});
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** What is left of a live object's annotations a, b and c after the apply of a file that has only d. */
function kept(managedFields: ManagedFieldsEntry[], more: Record<string, string> = {}): string[] {
  const live = liveObject({ metadata: { managedFields, annotations: { a: "1", b: "1", c: "1", ...more } } });
  return Object.keys(appliedMetadata({ name: "n", annotations: { d: "2" } }, live).annotations ?? {}).sort();
}

describe("annotations after an apply of a file that lacks them", () => {
  const byFlux = applied("flux", { ...annotations("a"), "f:spec": {} });
  const bySomeone = applied("someone", annotations("b"));
  const setByOthers = { ...applied("kubectl-annotate", annotations("a", "b")), operation: "Update" } as const;
  it.each<[string, ManagedFieldsEntry[], string[]]>([
    ["stay, when others have set them", [setByOthers], ["a", "b", "c", "d"]],
    ["go, when the apply had set them", [byFlux], ["b", "c", "d"]],
    ["go, also when the apply sets no spec", [applied("flux", annotations("a"))], ["b", "c", "d"]],
    ["stay, when someone else applies annotations alone", [byFlux, bySomeone], ["b", "c", "d"]],
  ])("%s", (_, managedFields, expected) => expect(kept(managedFields)).toEqual(expected));

  it("go, when kubectl has noted them", () => {
    const text = JSON.stringify({ metadata: { annotations: { b: "1" } } });
    expect(kept([applied("someone", annotations("a"))], { [LAST_APPLIED]: text })).toEqual(["a", "c", "d"]);
  });
});
