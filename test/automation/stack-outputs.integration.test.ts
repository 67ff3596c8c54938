import { mkdtemp, writeFile } from "node:fs/promises";
import path from "node:path";
import { StackReference } from "@pulumi/pulumi/stackReference";
import { execa } from "execa";
import { beforeAll, describe, expect, it } from "vitest";
import type { UpOptions } from "../../src/automation/engine";
import { resolveBinary } from "../../src/toolchain/resolve";
import { TestEngine } from "./test-engine";
import { Thing } from "./things";

let engine: TestEngine;
beforeAll(async () => {
  engine = await TestEngine.open();
  return () => engine.close();
});

const outputsOf = async (stack: string) => {
  const state = await engine.engine.exportStack(stack);
  return state?.deployment.resources?.find(({ type }) => type === "pulumi:pulumi:Stack")?.outputs;
};
/** The value of the thing `a`. */
const outputs: UpOptions["outputs"] = async (resources) => ({
  value: resources.find(({ name }) => name === "a")?.outputs.value,
  list: ["x"],
});

async function printedOutputs(stack: string): Promise<string> {
  const project = await mkdtemp(path.join(engine.directory, "project-"));
  await writeFile(path.join(project, "Pulumi.yaml"), "name: kindstack\nruntime: nodejs\n");
  const env = {
    ...process.env,
    PULUMI_BACKEND_URL: engine.settings.backendUrl,
    PULUMI_CONFIG_PASSPHRASE: "the-passphrase",
  };
  const words = ["stack", "output", "--json", "--stack", stack];
  return (await execa(await resolveBinary("pulumi"), words, { cwd: project, env })).stdout;
}

describe.each([
  ["a plain program", undefined],
  ["a program in the SDK's runtime", true],
])("the outputs of the stack of %s", (_, sdkRuntime) => {
  const stack = sdkRuntime ? "sdk" : "plain";
  const up = (value: string, options: UpOptions = {}) =>
    engine.engine.up(stack, () => void new Thing("a", { key: `${stack}/a`, value }), {
      sdkRuntime,
      outputs,
      ...options,
    });

  it.each([true, false])("are the operator's, with one save at the end: %s", async (savesOnce) => {
    await up("1", { savesOnce });
    expect(await outputsOf(stack)).toMatchObject({ value: "1" });
    await up("2", { savesOnce });
    expect(await outputsOf(stack)).toMatchObject({ value: "2" });
    await up("2", { savesOnce });
    expect(await outputsOf(stack)).toMatchObject({ value: "2" });
  });

  it("are those of before where the update fails, or they cannot be told", async () => {
    await up("1");
    expect((await up("terminal")).summary.result).toBe("failed");
    expect(await outputsOf(stack)).toMatchObject({ value: "1" });
    const unknown = async () => {
      throw new TypeError("x is undefined");
    };
    expect((await up("3", { outputs: unknown })).summary.result).toBe("succeeded");
    expect(engine.warnings).toContain("failed to set the outputs of a stack");
    expect(await outputsOf(stack)).toMatchObject({ value: "1" });
  });

  it("are what a stack reference and the CLI read", async () => {
    await up("1");
    const program = async () => {
      const other = new StackReference("other", { name: `organization/kindstack/${stack}` });
      new Thing("b", { key: `${stack}/b`, value: other.getOutput("value") });
    };
    expect(await engine.engine.up(`${stack}-reader`, program, { sdkRuntime: true })).toMatchObject({ failures: [] });
    expect(engine.things.live.get(`${stack}/b`)).toBe("1");
    expect(JSON.parse(await printedOutputs(stack))).toEqual({ value: "1", list: ["x"] });
  });
});
