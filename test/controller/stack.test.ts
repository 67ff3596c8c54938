import { describe, expect, it } from "vitest";
import { MASKED } from "../../providers/literal";
import type { DestroyOptions, UpOptions } from "../../src/automation/engine";
import type { UpdateAction } from "../../src/controller/action";
import type { Reconcile } from "../../src/controller/context";
import type { Pass } from "../../src/controller/gate";
import { ObjectStack } from "../../src/controller/stack";
import type { OutputsOf } from "../../stacks/contract/capabilities";
import type { AnyKind } from "../../stacks/contract/kind";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { facts } from "./facts";

const object = { metadata: { name: "cache", namespace: "default", uid: "uid-of-cache" } };
const program = () => {};
const bound: NonNullable<Pass["bound"]> = { plan: {} as never, observed: new Map(), untracked: [] };
const approval = { approver: "alice", at: "now", digest: "sha256:1", reason: "CHG-4711" };

/** What the engine is told of an update, and of a destroy, with this pass. */
async function told(
  pass: Omit<Pass, "type">,
  kind: AnyKind = memcached,
  cause: UpdateAction["cause"] = "Updating",
): Promise<{ up: UpOptions; destroy: DestroyOptions }> {
  const said: { up: UpOptions; destroy: DestroyOptions } = { up: {}, destroy: {} };
  const engine = {
    up: async (_stack: string, _program: () => void, options: UpOptions) => {
      Object.assign(said.up, options);
      return { found: true };
    },
    destroy: async (_stack: string, options: DestroyOptions) => void Object.assign(said.destroy, options),
  };
  const context = { kind, engine };
  const step = { context, object, item: { key: "default/cache" }, facts: facts({}) } as unknown as Reconcile;
  const stack = new ObjectStack(step);
  await stack.up(program, { type: "pass", ...pass }, { refresh: false, cause });
  await stack.destroy(false, { type: "pass", ...pass });
  return said;
}

describe("an operation", () => {
  it("gives the stack the outputs of the kind, if it has some", async () => {
    const capabilities = { outputs: { nodes: (outputsOf: OutputsOf) => outputsOf("deployment")?.replicas } };
    const { up } = await told({}, { ...memcached, capabilities } as unknown as AnyKind);
    const resource = { urn: "u", type: "t", name: "deployment", operation: "update" as const };
    const outputs = { replicas: 2, password: MASKED };
    expect(await up.outputs?.([{ ...resource, outputs }])).toEqual({ nodes: 2 });
    expect((await told({})).up).not.toHaveProperty("outputs");
  });

  it("without a plan is bound to nothing, and saves once where its resources are found again", async () => {
    const { up, destroy } = await told({});
    expect(up).toMatchObject({ refresh: false, savesOnce: true, plan: undefined, observed: undefined });
    expect(destroy).toMatchObject({ release: false, savesOnce: true, plan: undefined, observed: undefined });
  });

  it("that was requested says so in the stack's history", async () => {
    expect((await told({}, memcached, "Requested")).up.message).toBe("requested");
    expect((await told({})).up.message).toBeUndefined();
  });

  it("with a plan is bound to it, and an update compares with what is alive first", async () => {
    const { plan, observed } = bound;
    const { up, destroy } = await told({ bound });
    expect(up).toMatchObject({ refresh: true, savesOnce: true, plan, observed });
    expect(destroy).toMatchObject({ plan, observed });
  });

  it("that was approved names the approval, and an update saves each step: what is not saved may need another", async () => {
    const { up, destroy } = await told({ bound, approval });
    const message = "approved by alice: CHG-4711 (sha256:1)";
    expect(up).toMatchObject({ savesOnce: false, message });
    expect(destroy).toMatchObject({ savesOnce: true, message });
  });
});
