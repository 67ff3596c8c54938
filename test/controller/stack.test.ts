import { describe, expect, it } from "vitest";
import type { DestroyOptions, UpOptions } from "../../src/automation/engine";
import type { Reconcile } from "../../src/controller/context";
import type { Pass } from "../../src/controller/gate";
import { ObjectStack } from "../../src/controller/stack";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { facts } from "./facts";

const object = { metadata: { name: "cache", namespace: "default", uid: "uid-of-cache" } };
const program = () => {};
const bound: NonNullable<Pass["bound"]> = { plan: {} as never, observed: new Map(), untracked: [] };
const approval = { approver: "alice", at: "now", digest: "sha256:1", reason: "CHG-4711" };

/** What the engine is told of an update, and of a destroy, with this pass. */
async function told(pass: Omit<Pass, "type">): Promise<{ up: UpOptions; destroy: DestroyOptions }> {
  const said: { up: UpOptions; destroy: DestroyOptions } = { up: {}, destroy: {} };
  const engine = {
    up: async (_stack: string, _program: () => void, options: UpOptions) => void Object.assign(said.up, options),
    destroy: async (_stack: string, options: DestroyOptions) => void Object.assign(said.destroy, options),
  };
  const context = { kind: memcached, engine };
  const step = { context, object, item: { key: "default/cache" }, facts: facts({}) } as unknown as Reconcile;
  const stack = new ObjectStack(step);
  await stack.up(program, { type: "pass", ...pass }, { refresh: false });
  await stack.destroy(false, { type: "pass", ...pass });
  return said;
}

describe("an operation", () => {
  it("without a plan is bound to nothing, and saves once where its resources are found again", async () => {
    const { up, destroy } = await told({});
    expect(up).toMatchObject({ refresh: false, savesOnce: true, plan: undefined, observed: undefined });
    expect(destroy).toMatchObject({ release: false, savesOnce: true, plan: undefined, observed: undefined });
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
