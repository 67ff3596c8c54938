import { CustomResource } from "@pulumi/pulumi/resource";
import { beforeAll, describe, expect, it } from "vitest";
import { ENGINE, SDK } from "../../src/automation/messages";
import { TestEngine } from "./test-engine";
import { Thing } from "./things";

/* Pulumi's own words. Those of the SDK before 3.27x come from `contract.ts`, which also runs with a former version. */

let engine: TestEngine;
beforeAll(async () => {
  engine = await TestEngine.open();
  return () => engine.close();
});

class Absent extends CustomResource {
  constructor(name: string, type = "absent:index:Thing") {
    super(type, name, {});
  }
}

it("a missing plugin is told as what the update waits for", async () => {
  const program = () => void new Absent("one");
  const { failures } = await engine.engine.up("unplugged", program, { sdkRuntime: true });
  expect(failures).toMatchObject([
    {
      reason: "UpdateFailed",
      message: expect.stringMatching(ENGINE.noPlugin),
      dependency: "plugin 'pulumi-resource-absent'",
    },
  ]);
});

it("a registration that the engine refuses is told in its words", async () => {
  const program = () => void new Absent("one", "no type");
  const { failures } = await engine.engine.up("refused", program, { sdkRuntime: true });
  expect(failures).toMatchObject([{ reason: "UpdateFailed", message: expect.stringMatching(SDK.refused) }]);
});

describe("a protected resource", () => {
  const thing = (key: string) => () => void new Thing("kept", { key, value: "1" }, { protect: true });
  const advice =
    /^(?!.*pulumi (up|state))(?!.*`protect`).*The deletion policy Orphan .* run: kindstack state unprotect protected 'urn:pulumi:protected::.*::kept'$/;

  beforeAll(async () => {
    expect((await engine.engine.up("protected", thing("one"))).failures).toEqual([]);
  });

  it.each([
    ["would be deleted", () => engine.engine.up("protected", () => {})],
    ["would be replaced", () => engine.engine.up("protected", thing("other"))],
    ["would be destroyed", () => engine.engine.destroy("protected")],
  ])("that %s is told with the operator's own advice", async (_case, operation) => {
    const { failures } = await operation();
    expect(failures.map(({ message }) => message)).toContainEqual(expect.stringMatching(advice));
    expect(failures.map(({ message }) => message).filter((message) => ENGINE.isProtected.test(message))).toEqual([]);
  });
});
