import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runProgram } from "../../src/cli/program";
import { OWN_KEY_SERVICE } from "../../src/config";
import { resolveBinary } from "../../src/toolchain/resolve";

/* The stock CLI on stacks that the operator's own key service protects; a shell writes its output to files. */

let directory: string;
let pulumi: string;
let stderr: string;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "kindstack-keys-"));
  pulumi = (await resolveBinary("pulumi")).path;
  stderr = "";
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    stderr += String(text);
    return true;
  });
  vi.stubEnv("PULUMI_CONFIG_PASSPHRASE", "the-passphrase");
  vi.stubEnv("PULUMI_BACKEND_URL", `file://${directory}`);
  vi.stubEnv("PULUMI_HOME", path.join(directory, "home"));
  vi.stubEnv("PULUMI_SKIP_UPDATE_CHECK", "true");
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true, force: true });
});

const withKeys = (script: string) =>
  runProgram(["keys", "sh", "-c", `cd ${directory} && { ${script}; } > output 2>&1`, "--", "--help"]);
const output = () => readFile(path.join(directory, "output"), "utf8");

describe("kindstack keys", () => {
  it("lets pulumi make such a stack, look at it and give it back to the passphrase", async () => {
    const project = "name: kindstack\\nruntime: nodejs\\n";
    const script = [
      `printf '${project}' > Pulumi.yaml`,
      `${pulumi} stack init one --secrets-provider ${OWN_KEY_SERVICE}`,
      `${pulumi} stack export --stack one --file before.json`,
      `${pulumi} stack change-secrets-provider passphrase --stack one`,
      `${pulumi} stack export --stack one --file after.json`,
    ];
    expect(await withKeys(script.join(" && ")), await output()).toBe(0);
    const configuration = await readFile(path.join(directory, "Pulumi.one.yaml"), "utf8");
    expect(configuration).toMatch(/encryptionsalt/);
    expect(configuration).not.toMatch(/hashivault/);
  });

  it("fails as the command does, and says so", async () => {
    expect(await withKeys("exit 3")).toBe(1);
    expect(stderr).toBe("kindstack: sh has ended with 3\n");
    expect(await runProgram(["keys", "no-such-command"])).toBe(1);
    expect(stderr).toMatch(/no-such-command/);
  });

  it("wants the passphrase", async () => {
    vi.stubEnv("PULUMI_CONFIG_PASSPHRASE", "");
    vi.stubEnv("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    expect(await runProgram(["keys", "true"])).toBe(1);
    expect(stderr).toMatch(/no passphrase for the state/);
  });
});
