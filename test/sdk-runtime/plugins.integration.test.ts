import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { secret } from "@pulumi/pulumi/output";
import { CustomResource, type CustomResourceOptions, ProviderResource } from "@pulumi/pulumi/resource";
import { beforeEach, describe, expect, it } from "vitest";
import { GUARD_TYPE } from "../../providers/urn";
import type { EngineProcesses, EngineTiming } from "../../src/automation/engine-processes";
import type { GoEngine } from "../../src/automation/go-engine";
import { eventually } from "../../src/testing/eventually";
import { resolveBinary } from "../../src/toolchain/resolve";
import { openEngineIn } from "../automation/engine-in";
import { testDirectory } from "../directories";
import { terminal } from "../providers/failures";
import { Entry, installVault, VAULT_TOKEN, Vault } from "./vault";

/* How the processes of plugins are kept between updates. */

let directory: string;
let engine: GoEngine;
let processes: EngineProcesses;
let close: () => Promise<void>;
let lines: { fields: object; message: string }[];

class Absent extends ProviderResource {
  constructor(name: string) {
    super("absent", name, {});
  }
}

beforeEach(async () => {
  directory = testDirectory();
  lines = [];
  await open({});
  return () => close();
});

/** Opens the engine, in place of the one that is open. */
async function open(timing: EngineTiming) {
  await close?.();
  const say = (fields: object, message: string) => void lines.push({ fields, message });
  const environment = await installVault(directory);
  ({ processes, engine } = await openEngineIn(directory, { timing, environment, log: { warn: say, error: say } }));
  close = () => processes.close();
}

async function up(stack: string, { token = VAULT_TOKEN, entry = stack, value = "a value" } = {}, signal?: AbortSignal) {
  const program = async () => {
    const provider = new Vault(`${stack}/vault`, directory, token);
    new Entry(`${stack}/entry`, { path: entry, value: secret(value) }, { provider });
  };
  return engine.up(stack, program, { sdkRuntime: true, signal });
}

const starts = async () => (await readFile(path.join(directory, "starts"), "utf8")).trim().split("\n").map(Number);

function runs(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it("the option import of a plugin's resource is refused by name, and neither the resource nor what else there is changes", async () => {
  await up("one");
  await writeFile(path.join(directory, "there"), "made elsewhere");
  const there = (options: CustomResourceOptions) => async () => {
    const provider = new Vault("one/vault", directory);
    new Entry("one/entry", { path: "one", value: secret("a value") }, { provider });
    new Entry("one/there", { path: "there", value: secret("made elsewhere") }, { provider, ...options });
  };
  const refused = terminal("InvalidProgram", /^the option "import" of one\/there: /);
  for (const method of ["preview", "up"] as const) {
    const { failures } = await engine[method]("one", there({ import: "there" }), { sdkRuntime: true });
    expect(failures).toEqual([refused]);
  }
  expect(await readFile(path.join(directory, "one"), "utf8")).toBe("a value");

  expect(await engine.up("one", there({ id: "there" }), { sdkRuntime: true })).toMatchObject({ failures: [] });
  expect(await engine.destroy("one")).toMatchObject({ failures: [] });
  expect(await readFile(path.join(directory, "there"), "utf8")).toBe("made elsewhere");
});

it("the type of the guard of stacks is refused", async () => {
  class Guard extends CustomResource {}
  const program = async () => void new Guard(GUARD_TYPE, "mine");
  const { failures } = await engine.up("one", program, { sdkRuntime: true });
  expect(failures).toEqual([terminal("InvalidProgram", `the type ${GUARD_TYPE}`)]);
});

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
    const refused = [{ message: expect.stringContaining("the vault refuses the token") }];
    expect((await up("two", { token: "another token" })).failures).toMatchObject(refused);
    expect(await up("three")).toMatchObject({ failures: [] });
    expect(await starts()).toHaveLength(2);
  });

  it("is said to be missing in plain words", async () => {
    const result = await engine.up("one", async () => void new Absent("one/absent"), { sdkRuntime: true });
    expect(result.failures).toMatchObject([{ message: expect.stringContaining("pulumi-resource-absent") }]);
    expect(JSON.stringify(result.failures)).not.toContain("rpc error");
  });

  it("is started again for the next update when it has died", async () => {
    await up("one");
    const [pid = 0] = await starts();
    process.kill(pid, "SIGKILL");
    await eventually(() => expect(runs(pid)).toBe(false));
    expect(await up("one", { value: "after" })).toMatchObject({ failures: [] });
    expect(await starts()).toHaveLength(2);
  });

  it("is replaced when it crashes in the middle of an update, which fails alone", async () => {
    await up("one");
    const ended = [{ message: expect.stringContaining("the plugin vault has ended while it was at work") }];
    expect((await up("two", { entry: "crashes" })).failures).toMatchObject(ended);
    expect(await up("one", { value: "after" })).toMatchObject({ failures: [] });
    expect(await up("two")).toMatchObject({ failures: [] });
    expect(await starts()).toHaveLength(2);
  });

  it("is not cancelled for one update while another uses it: it is drained and replaced", async () => {
    const noted = async () => (await readFile(path.join(directory, "log"), "utf8").catch(() => "")).split("\n");
    const abort = new AbortController();
    const hanging = up("hanging", { entry: "hangs" }, abort.signal);
    const waiting = up("waiting", { entry: "waits" });
    await eventually(async () => expect(await noted()).toEqual(expect.arrayContaining(["hangs", "waits"])));
    abort.abort();
    expect(await hanging).toMatchObject({ interrupted: true });
    expect(await up("one")).toMatchObject({ failures: [] });
    const [first = 0, second = 0, ...others] = await starts();
    expect(others).toEqual([]);
    // The host hears of the end of an update's connection a little later than this process of the update's end.
    await eventually(async () =>
      expect(await processes.plugins.list()).toMatchObject([
        { pid: first, state: "draining", inUse: 1 },
        { pid: second, state: "idle" },
      ]),
    );
    await writeFile(path.join(directory, "go"), "");
    expect(await waiting).toMatchObject({ failures: [] });
    await eventually(() => expect(runs(first)).toBe(false));
  });

  it("is kept over successors of the engine, and over one that has crashed", async () => {
    await open({ operationsPerProcess: 1 });
    for (const value of ["first", "second", "third"]) {
      expect(await up("one", { value })).toMatchObject({ failures: [] });
    }
    expect(processes.counts.successors).toBe(2);
    await open({});
    await up("one");
    const crashing = await processes.use(async ({ pid = 0 }) => pid);
    process.kill(crashing, "SIGKILL");
    await eventually(() => expect(processes.counts.crashes).toBe(1));
    expect(await up("one", { value: "after" })).toMatchObject({ failures: [] });
    expect(await starts()).toHaveLength(2); // one of each opened engine
  });

  it("ends with the host of plugins, however that ends", async () => {
    await up("one");
    const [pid = 0] = await starts();
    process.kill(processes.plugins.process?.pid ?? 0, "SIGKILL");
    await eventually(() => expect(runs(pid)).toBe(false));
    expect(await up("one", { value: "after" })).toMatchObject({ failures: [] });
    const [, second = 0] = await starts();
    expect(runs(second)).toBe(true);
    await close();
    await eventually(() => expect(runs(second)).toBe(false));
  });

  it("ends with the operator, also when that is killed with its engine", async () => {
    const words = [path.join(__dirname, "operator.cjs"), await resolveBinary("engine"), directory];
    const operator = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = (await once(operator.stdout, "data")) as [Buffer];
    const { failures, pids } = JSON.parse(String(line)) as { failures: unknown[]; pids: number[] };
    expect(failures).toEqual([]);
    expect(pids.map(runs)).toEqual([true, true]);
    const engines = (await readFile(`/proc/${operator.pid}/task/${operator.pid}/children`, "utf8")).trim().split(" ");
    for (const pid of [operator.pid ?? 0, ...engines.map(Number).filter((pid) => !pids.includes(pid))]) {
      process.kill(pid, "SIGKILL");
    }
    await eventually(() => expect(pids.map(runs)).toEqual([false, false]));
  });

  it("ends when it is idle, and its host with the last one", async () => {
    await open({ pluginIdleMs: 200 });
    await up("one");
    const [pid = 0] = await starts();
    await eventually(() => expect(runs(pid)).toBe(false));
    await eventually(() => expect(processes.plugins.process).toBeUndefined());
    expect(await up("one", { value: "after" })).toMatchObject({ failures: [] });
    const said = JSON.stringify(lines);
    expect(said).not.toContain("ended unexpectedly");
    expect(said).not.toContain("prematurely");
  });

  it("is listed, with what it has in memory", async () => {
    expect(await processes.plugins.list()).toEqual([]);
    await up("one");
    await up("two");
    const [pid] = await starts();
    await eventually(async () =>
      expect(await processes.plugins.list()).toEqual([
        {
          ...{ name: "vault", pid, updates: 2, inUse: 0, state: "idle" },
          startedAt: expect.stringMatching(/^\d{4}-/),
          memoryBytes: expect.any(Number),
        },
      ]),
    );
    const [{ memoryBytes = 0 } = {}] = await processes.plugins.list();
    expect(memoryBytes).toBeGreaterThan(20 * 2 ** 20);
  });

  it("is ended when it has more memory than plugins may have, and does not see the state's credentials", async () => {
    await open({ pluginMemoryBytes: 2 ** 20 * 300 });
    await up("one");
    const [pid = 0] = await starts();
    const environment = await readFile(`/proc/${pid}/environ`, "utf8");
    expect(environment).not.toMatch(/PULUMI_BACKEND_URL|the-passphrase/);
    expect(await up("leaks", { entry: "leaks 400 MiB" })).toMatchObject({ failures: [] });
    await eventually(() => expect(runs(pid)).toBe(false));
    expect(await up("one", { value: "after" })).toMatchObject({ failures: [] });
    expect(await starts()).toHaveLength(2);
  });

  it("has its lines in the log with its name, and no secret that it quotes anywhere", async () => {
    const result = await up("quotes", { entry: "quoted", value: "canary-of-the-entry" });
    expect(result.failures).toMatchObject([{ message: expect.stringContaining("cannot keep [secret] with [secret]") }]);
    const fields = { plugin: "vault", line: "keeping [secret] with [secret]" };
    await eventually(() => expect(lines).toContainEqual({ message: "a plugin says", fields }));
    const said = JSON.stringify([result.failures, lines]);
    expect(said).not.toContain("canary-of-the-entry");
    expect(said).not.toContain(VAULT_TOKEN);
  });
});
