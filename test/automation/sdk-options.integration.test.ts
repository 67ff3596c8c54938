import { RunRequest } from "@pulumi/pulumi/proto/language_pb";
import { type CustomResourceOptions, ResourceHook } from "@pulumi/pulumi/resource";
import { registerResourceTransform } from "@pulumi/pulumi/runtime/stack";
import { beforeAll, describe, expect, it } from "vitest";
import { declaredBy } from "../../providers/registration";
import type { DynamicResourceOptions } from "../../providers/resource-options";
import { runSdkProgram } from "../../src/automation/sdk-program";
import { summaryOf, TestEngine } from "./test-engine";
import { Thing } from "./things";

/* What Pulumi has for the resources of programs in the SDK's runtime: hooks and transforms. */

let engine: TestEngine;
beforeAll(async () => {
  engine = await TestEngine.open();
  return () => engine.close();
});

const up = (stack: string, program: () => void) => engine.engine.up(stack, program, { sdkRuntime: true });
const thing = (name: string, value: string, options: CustomResourceOptions = {}) =>
  new Thing(name, { key: name, value }, options as DynamicResourceOptions);

describe("hooks of a resource", () => {
  const ran: string[] = [];
  const hook = (name: string) => new ResourceHook(name, async () => void ran.push(name));
  const hooked = (name: string, value: string) => {
    const [afterCreate, afterUpdate] = [[hook("created")], [hook("updated")]];
    const [beforeDelete, afterDelete] = [[hook("removing")], [hook("removed")]];
    if (name !== "") thing(name, value, { hooks: { afterCreate, afterUpdate, beforeDelete, afterDelete } });
  };

  it("run in updates, those of a deletion as well", async () => {
    await up("hooks", () => hooked("one", "1"));
    await up("hooks", () => hooked("one", "2"));
    expect(ran).toEqual(["created", "updated"]);
    expect(await up("hooks", () => hooked("", ""))).toMatchObject({ summary: { result: "succeeded" } });
    expect(ran).toEqual(["created", "updated", "removing", "removed"]);
    await engine.engine.destroy("hooks");
  });

  it("fail the update that is to delete the resource while the program does not register them", async () => {
    await up("forgotten", () => hooked("one", "1"));
    const { failures } = await up("forgotten", () => {});
    expect(failures).toMatchObject([{ message: expect.stringContaining('hook "removing" was not registered') }]);
    expect(engine.things.live.has("one")).toBe(true);
    await engine.engine.destroy("forgotten");
  });

  it("keep no object: a destroy runs no program, and passes over them", async () => {
    await up("destroyed", () => hooked("one", "1"));
    ran.length = 0;

    const preview = await engine.engine.previewDestroy("destroyed");
    expect(preview.failures).toEqual([]);
    expect(await engine.engine.destroy("destroyed")).toMatchObject({ summary: { result: "succeeded" }, failures: [] });

    expect(engine.things.live.has("one")).toBe(false);
    expect(ran).toEqual([]);
    expect(engine.warnings).toContain("a deletion runs no hooks of resources");
  });
});

it("transforms change a resource, or all of a program", async () => {
  const appended = (text: string) => (args: { props: { value?: string }; opts: object }) => ({
    props: { ...args.props, ...(args.props.value !== undefined && { value: args.props.value + text }) },
    opts: args.opts,
  });
  await up("transforms", () => {
    registerResourceTransform(appended(" by all"));
    thing("plain", "1");
    thing("own", "1", { transforms: [appended(" by itself")] });
  });
  expect(engine.things.live.get("plain")).toBe("1 by all");
  expect(engine.things.live.get("own")).toBe("1 by itself by all");
});

/*
 * A throw in `process.nextTick` leaves its asynchronous context to all sockets that Node.js accepts afterwards, and so to the calls of
 * the engine.
 */
it("a program is not what another program registers, in whose context the engine's call has come", async () => {
  const program = () => void thing("one", "1");
  const runInSdk = async (request: Uint8Array) => {
    const others = await declaredBy(() => runSdkProgram(program, RunRequest.deserializeBinary(request)));
    expect(others).toEqual([]);
  };
  const result = summaryOf(await up("called", Object.assign(program, { runInSdk })));
  expect(result).toEqual({ result: "succeeded", resourceChanges: { create: 1 } });
});
