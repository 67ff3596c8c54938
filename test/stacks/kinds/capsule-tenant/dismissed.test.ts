import { expect, it, vi } from "vitest";
import type { LiveObject } from "../../../../providers/kubernetes/client";
import { tellOfDismissed } from "../../../../stacks/kinds/capsule-tenant/dismissed";
import { labelled, object, oilTenant } from "./objects";

const binding = (subject: object, name = "capsule-oil-0"): LiveObject => ({
  ...object("RoleBinding", "oil-a", name, { "capsule.clastix.io/role-binding": "0" }),
  subjects: [subject],
});
const alice = { kind: "User", name: "alice" };
const robot = { kind: "ServiceAccount", name: "robot", namespace: "ci" };
const mine: LiveObject = { ...object("RoleBinding", "oil-a", "mine"), subjects: [{ kind: "User", name: "mallory" }] };

/** What is told as the RoleBinding of the Tenant changes from one subject to the next. */
async function toldOf(...states: LiveObject[][]): Promise<string[]> {
  const memory = new Map<string, unknown>();
  const warn = vi.fn();
  const list = async (_: unknown, namespace: string) => (namespace === "oil-a" ? [...(states.at(-1) ?? []), mine] : []);
  for (const bindings of states) {
    await tellOfDismissed(oilTenant(), { owned: [labelled("oil-a"), ...bindings], memory, warn, list });
  }
  return warn.mock.calls.map(([, reason, message]) => `${reason}: ${message}`);
}

it("an owner who lost the rights is told of once, with the bindings that are not the Tenant's", async () => {
  const [told, ...more] = await toldOf([binding(alice)], [binding(robot)], [binding(robot)]);
  expect(told).toContain("SubjectDismissed: User alice lost the rights");
  expect(told).toContain("RoleBindings oil-a/mine, and tokens of ServiceAccounts");
  expect(told).not.toContain("capsule-oil-0");
  expect(more).toEqual([]);
});

it("an account is named with its namespace", async () => {
  expect(await toldOf([binding(robot)], [binding(alice)])).toEqual([
    expect.stringContaining("ServiceAccount ci/robot"),
  ]);
});

it("nothing is told of who still has rights, or while there are no bindings", async () => {
  const both = [binding(alice), binding(robot, "capsule-oil-2")];
  expect(await toldOf([binding(alice)], both, both)).toEqual([]);
  expect(await toldOf([binding(alice)], [], [binding(alice)])).toEqual([]);
  expect(await toldOf([binding(robot)])).toEqual([]);
});
