import { createSecretKey, randomBytes } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import { sealed } from "../../providers/literal";
import { PROVIDER_PROPERTY } from "../../providers/resource-options";
import { declarationsDigest, declaresTheSame } from "../../src/plan/digest";
import type { AnyKind } from "../../stacks/contract/kind";
import { podSet } from "../../stacks/kinds/podset/kind";

const key = createSecretKey(randomBytes(32));
const version = (kind: AnyKind, programDigest = "p1") => ({ planKey: async () => key, kind, programDigest });
const made = (inputs: object, stub = OBJECT_STUB) => [
  { type: "t", name: "n", inputs: { ...inputs, [PROVIDER_PROPERTY]: stub } },
];

function withCapabilities(capabilities: object): AnyKind {
  return { ...podSet, capabilities: { ...podSet.capabilities, ...capabilities } };
}

describe("the digest of declarations", () => {
  it("is the same for the same inputs in another order, by other code", async () => {
    const digests = await Promise.all([
      declarationsDigest(version(podSet), made({ a: 1, b: 2 })),
      declarationsDigest(version(podSet, "p2"), made({ b: 2, a: 1 })),
    ]);
    expect(digests[0]).toBe(digests[1]);
  });

  it.each([
    ["an input", version(podSet), made({ a: 2 })],
    ["a secret", version(podSet), made({ a: sealed(1) })],
    ["an option", version(podSet), made({ a: 1 }).map((one) => ({ ...one, options: { protect: true } }))],
    ["a setting", version(withCapabilities({ settings: () => "other" })), made({ a: 1 })],
    ["the key", { ...version(podSet), planKey: async () => createSecretKey(randomBytes(32)) }, made({ a: 1 })],
  ])("differs by %s", async (_, of, declared) => {
    const before = await declarationsDigest(version(podSet), made({ a: 1 }));
    expect(await declarationsDigest(of, declared)).not.toBe(before);
  });

  it("differs by the version of a provider, or by any code where the provider has no version", async () => {
    const provider = (number?: number) =>
      withCapabilities({ providers: [{ stub: "own", provider: {}, version: number }] });
    const of = (kind: AnyKind, code: string) => declarationsDigest(version(kind, code), made({ a: 1 }, "own"));
    expect(await of(provider(1), "p1")).toBe(await of(provider(1), "p2"));
    expect(await of(provider(1), "p1")).not.toBe(await of(provider(2), "p1"));
    expect(await of(provider(), "p1")).not.toBe(await of(provider(), "p2"));
  });
});

describe("a program whose code is new", () => {
  it.each([
    ["was recorded without its declarations", podSet, { name: "s", program: "p0" }],
    ["is the SDK's to run", withCapabilities({ sdkRuntime: true }), { name: "s", program: "p0", declarations: "d" }],
    ["gives outputs", withCapabilities({ outputs: {} }), { name: "s", program: "p0", declarations: "d" }],
  ])("may declare something else where it %s, and is not run to see", async (_, kind, stack) => {
    const program = vi.fn();
    expect(await declaresTheSame(version(kind), stack, program)).toBe(false);
    expect(program).not.toHaveBeenCalled();
  });

  it("declares the same where its resources are the same", async () => {
    const nothing = await declarationsDigest(version(podSet), []);
    const stack = { name: "s", program: "p0", declarations: nothing };
    expect(await declaresTheSame(version(podSet), stack, () => {})).toBe(true);
    expect(await declaresTheSame(version(podSet), { ...stack, declarations: "other" }, () => {})).toBe(false);
  });
});
