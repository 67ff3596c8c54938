import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { type Output, secret } from "@pulumi/pulumi/output";
import { CustomResource, type CustomResourceOptions, ProviderResource } from "@pulumi/pulumi/resource";
import { beforeEach, describe, expect, it } from "vitest";
import { ProviderHost } from "../../providers/host/host";
import { providersOf } from "../../providers/index";
import { GoEngine } from "../../src/automation/go-engine";
import { openEngine } from "../../src/automation/workspace";
import { eventually } from "../../src/testing/eventually";
import { resolveBinary } from "../../src/toolchain/resolve";

/* How the engine keeps the processes of plugins between updates. The plugin notes its process's number at each start. */

const TOKEN = "the-token-of-the-vault";
let directory: string;
let engine: GoEngine;
let close: () => Promise<void>;
let lines: { fields: object; message: string }[];

class Vault extends ProviderResource {
  constructor(name: string, inputs: { directory: string; token: Output<string> }) {
    super("vault", name, inputs);
  }
}

class Entry extends CustomResource {
  constructor(name: string, inputs: { path: string; value: Output<string> }, options: CustomResourceOptions) {
    super("vault:index:Entry", name, inputs, options);
  }
}

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "kindstack-plugins-"));
  const plugin = path.join(directory, "pulumi-resource-vault");
  const script = path.join(__dirname, "vault-plugin.cjs");
  const command = `#!/bin/sh\necho $$ >> '${directory}/starts'\nexec '${process.execPath}' '${script}' "$@"\n`;
  await writeFile(plugin, command);
  await chmod(plugin, 0o755);
  lines = [];
  const say = (fields: object, message: string) => void lines.push({ fields, message });
  const processes = await openEngine({
    file: await resolveBinary("engine"),
    workDirectory: path.join(directory, "work"),
    backendUrl: pathToFileURL(path.join(directory, "state")).href,
    protection: { passphrase: { value: "the-passphrase" }, keyService: undefined },
    environment: { ...process.env, PATH: `${directory}${path.delimiter}${process.env.PATH}` },
    log: { warn: say, error: say },
  });
  engine = new GoEngine({ processes, host: new ProviderHost(providersOf()), timeoutMs: 60_000 });
  close = () => processes.close();
  return async () => {
    await close();
    await rm(directory, { recursive: true, force: true });
  };
});

async function up(stack: string, { token = TOKEN, entry = stack, value = "a value" } = {}) {
  const program = async () => {
    const provider = new Vault(`${stack}/vault`, { directory, token: secret(token) });
    new Entry(`${stack}/entry`, { path: entry, value: secret(value) }, { provider });
  };
  return engine.up(stack, program, { sdkRuntime: true });
}

const starts = async () => (await readFile(path.join(directory, "starts"), "utf8")).trim().split("\n").map(Number);

function runs(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("the process of a plugin", () => {
  it("serves updates of one configuration, side by side and one after another", async () => {
    const first = await Promise.all(["one", "two", "three"].map((stack) => up(stack)));
    expect(first.map(({ failures }) => failures)).toEqual([[], [], []]);
    expect(await up("one", { value: "another" })).toMatchObject({ failures: [] });
    expect(await starts()).toHaveLength(1);
    expect(await readFile(path.join(directory, "one"), "utf8")).toBe("another");
  });

  it("is another one for another configuration", async () => {
    await up("one");
    expect((await up("two", { token: "another token" })).failures).toMatchObject([
      { message: expect.stringContaining("the vault refuses the token") },
    ]);
    expect(await up("three")).toMatchObject({ failures: [] });
    expect(await starts()).toHaveLength(2);
  });

  it("is started again for the next update when it has died", async () => {
    await up("one");
    const [pid = 0] = await starts();
    process.kill(pid, "SIGKILL");
    await eventually(() => expect(runs(pid)).toBe(false));
    expect(await up("one", { value: "after" })).toMatchObject({ failures: [] });
    expect(await starts()).toHaveLength(2);
  });

  it("ends with the engine, however that ends", async () => {
    await up("one");
    const [pid = 0] = await starts();
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
    process.kill(parent, "SIGKILL");
    await eventually(() => expect(runs(pid)).toBe(false));
    expect(await up("one", { value: "after" })).toMatchObject({ failures: [] });
    const [, second = 0] = await starts();
    expect(runs(second)).toBe(true);
    await close();
    await eventually(() => expect(runs(second)).toBe(false));
  });

  it("has its lines in the log with its name, and no secret that it quotes anywhere", async () => {
    const result = await up("quotes", { entry: "quoted", value: "canary-of-the-entry" });
    expect(result.failures).toMatchObject([{ message: expect.stringContaining("cannot keep [secret] with [secret]") }]);
    await eventually(() =>
      expect(lines).toContainEqual({
        message: "a plugin says",
        fields: { plugin: "vault", line: "keeping [secret] with [secret]" },
      }),
    );
    const said = JSON.stringify([result.failures, lines]);
    expect(said).not.toContain("canary-of-the-entry");
    expect(said).not.toContain(TOKEN);
  });
});
