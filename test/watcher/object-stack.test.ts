import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { Batches } from "../../src/watcher/batch";
import { ObjectStacks } from "../../src/watcher/object-stack";
import { Placement } from "../../src/watcher/placement";
import { componentUrn, STACK_NUMBER_ANNOTATION, sharedStackName } from "../../stacks/contract/shared-stack";
import { postgresWriter } from "../../stacks/postgres-writer/kind";

/** The record is what the API server writes on every new object, unless another is given. */
function writer(name: string, number = "0"): LiveObject {
  return {
    apiVersion: "demo.yash.com/v1",
    kind: "PostgresWriter",
    metadata: {
      name,
      namespace: "default",
      uid: name,
      resourceVersion: "1",
      annotations: { [STACK_NUMBER_ANNOTATION]: number },
    },
  };
}

/** Stacks with room for one object each; of the states, how often one was read. */
class World {
  reads = 0;
  inFirst: string[] = [];
  failure: Error | undefined;
  readonly stacks = new ObjectStacks(
    postgresWriter,
    { up: () => Promise.reject(new Error("shared")), destroy: () => Promise.reject(new Error("shared")) },
    {
      placement: new Placement(postgresWriter, 1),
      batches: {} as Batches,
      recorded: async (stack) => {
        this.reads++;
        if (this.failure !== undefined) throw this.failure;
        expect(stack).toBe(sharedStackName(postgresWriter, "default", 0));
        return this.inFirst.map((key) => componentUrn(postgresWriter, "kindstack", stack, key));
      },
    },
  );
}

describe("the place of an object", () => {
  it("is the first stack, as long as that has room, and no state is read for it", async () => {
    const world = new World();
    expect(await world.stacks.place(writer("a"))).toBe(0);
    expect(await world.stacks.place(writer("a"))).toBe(0);
    expect(world.reads).toBe(0);
  });

  it("is the first stack when that has something of it since before a restart, and has no room by now", async () => {
    const world = new World();
    world.inFirst = ["default/begun", "default/b"];
    expect(await world.stacks.place(writer("a"))).toBe(0);
    expect(await world.stacks.place(writer("new"))).toBe(1);
    expect(await world.stacks.place(writer("begun"))).toBe(0);
    expect(world.stacks.nameOf("default/begun", writer("begun"))).toBe(sharedStackName(postgresWriter, "default", 0));
    expect(await world.stacks.place(writer("newer"))).toBe(2);
    expect(world.reads, "one state for all").toBe(1);
  });

  it("is not looked for in a state when it was chosen for the object", async () => {
    const world = new World();
    expect(await world.stacks.place(writer("a", "3"))).toBe(3);
    expect(world.reads).toBe(0);
  });

  it("is looked for again when another replica may have worked in the namespace, or it could not be read", async () => {
    const world = new World();
    await world.stacks.place(writer("a"));
    world.failure = new Error("away");
    await expect(world.stacks.place(writer("b"))).rejects.toThrow("away");
    world.failure = undefined;
    expect(await world.stacks.place(writer("b"))).toBe(1);
    world.inFirst = ["default/b"];
    expect(await world.stacks.place(writer("b"))).toBe(1);
    world.stacks.forget("default/b");
    expect(await world.stacks.place(writer("b"))).toBe(0);
  });
});
