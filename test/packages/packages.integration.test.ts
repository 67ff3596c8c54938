import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import pino from "pino";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { cpuSeconds } from "../../bench/processes";
import { noFence } from "../../providers/fence";
import { declaredBy } from "../../providers/registration";
import { Packages } from "../../src/packages/packages";
import { type PackageLimits, PackageRunner } from "../../src/packages/runner";
import { eventually } from "../../src/testing/eventually";
import { customResourceDefinition } from "../../stacks/contract/crd";
import { type AnyKind, parseServed } from "../../stacks/contract/kind";
import type { KindObject } from "../../stacks/contract/object";
import { runProgram } from "../../stacks/contract/run-program";
import { loadKinds } from "../../stacks/kinds/catalog";
import { useDirectory } from "../directories";

const ROOT = path.resolve(__dirname, "../..");
const folder = useDirectory();
const outside = path.join(folder, "outside");
const shelf = path.join(folder, "shelf");

const CODE = `
const { defineKind, defineProvider, DynamicResource, TerminalError, Type, PendingError } = require("kindstack");
const { KubernetesObject } = require("kindstack/providers/kubernetes");
const fs = require("node:fs");

const { stub, provider } = defineProvider("shelf", {
  check: async (_, inputs) => ({ inputs, failures: [] }),
  diff: async () => ({ changes: false }),
  async create(inputs, context) {
    context?.fence.check();
    if (inputs.mode === "abort") process.abort();
    if (inputs.mode === "wait") await new Promise((resolve) => setTimeout(resolve, 1_000));
    if (inputs.mode === "signal") await new Promise((_, fail) => context.signal.addEventListener("abort", () => fail(context.signal.reason)));
    context?.log.info("made", { of: context.object?.name });
    fs.writeFileSync(inputs.file, "made");
    context?.progress("written");
    return { id: inputs.file, outs: inputs };
  },
  read: async (id, outs) => ({ id, props: outs }),
  update: async (_, __, news) => ({ outs: news }),
  delete: async (id) => fs.rmSync(id, { force: true }),
  release: async (id, outs) => { if (outs.mode === "abort") process.abort(); },
});

const leaked = [];
module.exports.odd = defineKind({
  group: "odd.example.com", version: "v1", kind: "Odd", plural: "odds", singular: "odd", scope: "Namespaced", description: "",
  spec: Type.Object({ mode: Type.String({ minLength: 1 }), size: Type.Optional(Type.Integer({ minimum: 1 })) }),
  status: Type.Object({ mode: Type.Optional(Type.String()) }),
  columns: [], owns: [{ apiVersion: "v1", kind: "ConfigMap" }], directory: __dirname,
  validate({ spec }) { if (spec.mode === "invalid") throw new TerminalError("Invalid", "spec.mode: not this one"); },
  report({ spec }) {
    if (spec.mode === "loop") for (;;);
    if (spec.mode === "large") return { mode: "x".repeat(2e7) };
    return spec.mode === "wrong" ? "a text" : { mode: spec.mode };
  },
  async program({ metadata, spec: { mode } }, { owner, log, read }) {
    const fail = () => { throw new Error("thrown by " + metadata.name); };
    if (mode === "throw") fail();
    if (mode === "pending") throw new PendingError("Waiting", "for another");
    if (mode === "rejection") void Promise.reject(new Error("thrown by " + metadata.name));
    if (mode === "timer") { setTimeout(fail, 0); await new Promise((resolve) => setTimeout(resolve, 50)); }
    if (mode === "exit") process.exit(3);
    if (mode === "abort") process.abort();
    if (mode === "hang") await new Promise(() => {});
    if (mode === "loop") for (;;);
    if (mode === "buffers") for (const all = []; ; ) all.push(Buffer.alloc(2e7, 1));
    if (mode === "heap") for (const all = []; ; ) all.push(new Array(1e6).fill(Math.random()));
    if (mode === "leak") { leaked.push(Buffer.alloc(8e6, 1)); await new Promise((resolve) => setTimeout(resolve, 20)); }
    if (mode === "write") fs.writeFileSync(metadata.labels.file, "written");
    if (mode === "read") fs.readFileSync(metadata.labels.file);
    if (mode === "large") throw new Error("x".repeat(2e7));
    if (mode === "long line") log.info("x".repeat(2e7));
    if (mode === "send") process.send?.({ ready: true });
    if (mode === "message") process._send([null]);
    if (mode === "descriptor") fs.writeSync(3, Buffer.from([0, 0, 0, 4, 1, 2, 3, 4]));
    if (mode === "signal") process.kill(process.ppid, "SIGTERM");
    if (mode === "flood") for (let line = 0; line < 20_000; line++) console.log(line);
    if (mode === "spawn") require("node:child_process").execFileSync("true");
    log.info("declares", { environment: Object.keys(process.env), secret: read("login")?.data });
    const manifest = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: metadata.name, namespace: "default" }, data: { mode } };
    const first = new KubernetesObject("first", { owner, manifest }, { aliases: ["urn:pulumi:a::b::c::d"] });
    const other = { ...manifest, metadata: { name: "other", namespace: "default" } };
    new KubernetesObject("second", { owner, manifest: other }, { dependsOn: first, protect: true });
  },
  capabilities: {
    environment: { ODD_SETTING: "of this kind", KINDSTACK_CLUSTER: "not its own" },
    settings: () => process.env.ODD_SETTING,
    reads: { login: { apiVersion: "v1", kind: "Secret", name: ({ spec }) => spec.mode } },
    readyWhen: () => ["one more"],
    conditions: (object, owned, failure) => [{ type: "Odd", status: "True", reason: "Odd", message: failure ?? String(owned.length) }],
    outputs: { mode: (of, { metadata }) => of(metadata.name + "/a")?.mode },
    versions: [{
      version: "v2", spec: Type.Object({ how: Type.String() }),
      toStored: ({ spec, annotations }) => ({ spec: { mode: spec.how }, annotations }),
      fromStored: ({ spec, annotations }) => ({ spec: { how: spec.mode }, annotations }),
    }],
    providers: [{ stub, provider, version: 1 }],
    external: {
      findDrift: async (objects) => ({ drifted: new Map([["a", "size"]]), unknown: new Map([["b", new TerminalError("Forbidden", "no")]]) }),
      removeUntracked: async (owner, kept, options, { fence }) => { fence.check(); fs.writeFileSync(kept[0].file, owner.uid); },
    },
    maintain: async ({ spec }, { apply, memory, owned }) => {
      memory.set("times", (memory.get("times") ?? 0) + 1);
      await apply({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: spec.mode } }, "odd");
      return { requeueAfterMs: owned.length };
    },
  },
});

module.exports.sdk = defineKind({
  ...module.exports.odd, kind: "Oddsdk", plural: "oddsdks", singular: "oddsdk", capabilities: { sdkRuntime: true },
});
`;

const LIMITS: PackageLimits = { timeoutMs: 2_000, memoryMib: 96, writable: [shelf], addons: false };
const lines: string[] = [];
const logger = pino({}, { write: (line) => lines.push(line) });
const opened: Packages[] = [];
let packages: Packages;
let odd: AnyKind;

/** Serves the package anew, until the test has ended. */
async function serve(idleMs = 30_000, module = "odd"): Promise<AnyKind> {
  const odds = { ODD_SETTING: "set", ODD_SECRET: "s", KINDSTACK_CLUSTER: "c", PSQL_PASSWORD: "p" };
  packages = new Packages({ limits: LIMITS, idleMs, environment: { ...process.env, ...odds }, logger });
  opened.push(packages);
  const { kinds, problems } = await packages.load([path.join(folder, module)]);
  expect(problems).toEqual([]);
  return kinds[0] as AnyKind;
}

beforeAll(() => {
  fs.mkdirSync(path.join(folder, "odd"));
  fs.mkdirSync(shelf);
  fs.mkdirSync(outside);
  fs.writeFileSync(path.join(folder, "odd/package.json"), JSON.stringify({ name: "odd", main: "index.js" }));
  fs.writeFileSync(path.join(folder, "odd/index.js"), CODE);
  fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(folder, "node_modules"));
});
beforeAll(async () => {
  odd = await serve();
});
afterEach(() => {
  lines.length = 0;
  for (const served of opened.splice(1)) served.close();
});
afterAll(() => opened[0]?.close());

const objectOf = (name: string, mode = name, labels = {}): KindObject & { spec: unknown } =>
  ({
    apiVersion: "odd.example.com/v1",
    kind: "Odd",
    metadata: { name, namespace: "default", uid: name, resourceVersion: "1", generation: 1, labels },
    spec: { mode },
  }) as KindObject;
const declare = (kind: AnyKind, object: KindObject, logged: unknown[] = []) => {
  const info = (message: string, fields?: object) => void logged.push({ message, ...fields });
  const log = { debug: info, info, warn: info, error: info };
  const owner = { uid: object.metadata.uid, description: "Odd" };
  const referenced = new Map([["login", { data: { user: "alex" } } as never]]);
  return declaredBy(() =>
    runProgram(kind, object, { owner, owned: [], recorded: new Set(), watched: [], referenced, log }),
  );
};
const failureOf = (work: Promise<unknown>) => work.catch((thrown: unknown) => thrown);
const owner = { uid: "u", description: "Odd" };
const report = (mode: string) => Promise.resolve(odd.report(objectOf(mode), []));

describe("a kind of a package", () => {
  it("is defined and declares as in one process", async () => {
    const { kinds } = loadKinds([path.join(folder, "odd")]);
    const own = kinds[0] as AnyKind;
    expect(customResourceDefinition(odd)).toEqual(customResourceDefinition(own));
    const declared = await declare(odd, objectOf("fine"));
    expect(declared).toEqual(await declare(own, objectOf("fine")));
    expect(declared[1]).toMatchObject({ dependsOn: [0], options: { protect: true } });
  });

  it("answers all that the operator asks", async () => {
    const object = objectOf("fine");
    const { capabilities } = odd;
    expect(await report("fine")).toEqual({ mode: "fine" });
    expect(await capabilities.readyWhen?.(object, [])).toEqual(["one more"]);
    expect(await capabilities.conditions?.(object, [], "failed")).toMatchObject([{ type: "Odd", message: "failed" }]);
    expect(await capabilities.reads?.login?.name(object)).toBe("fine");
    expect(capabilities.settings?.()).toBe("set");
    const stored = await capabilities.versions?.[0]?.toStored({ spec: { how: "x" }, annotations: {} });
    expect(stored).toEqual({ spec: { mode: "x" }, annotations: {} });
    const { drifted, unknown } = (await capabilities.external?.findDrift([object])) ?? {};
    expect(drifted).toEqual(new Map([["a", "size"]]));
    expect(unknown?.get("b")).toMatchObject({ errorClass: "terminal", reason: "Forbidden", message: "no" });
  });

  it("keeps what it remembers of an object, and asks the operator for what it may do", async () => {
    const applied: unknown[] = [];
    const memory = new Map<string, unknown>();
    const apply = async (...given: unknown[]) => void applied.push(given);
    const nothing = { tryOut: async () => undefined, remove: async () => {}, warn: () => {} };
    const maintenance = { owned: [], memory, apply, ...nothing };
    await odd.capabilities.maintain?.(objectOf("fine"), maintenance);
    expect(await odd.capabilities.maintain?.(objectOf("fine"), maintenance)).toEqual({ requeueAfterMs: 0 });
    expect(memory).toEqual(new Map([["times", 2]]));
    expect(applied[1]).toEqual([{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "fine" } }, "odd"]);
  });

  it("has its errors with their class, its log, and of the environment what it declares", async () => {
    const invalid = { errorClass: "terminal", reason: "Invalid" };
    await expect(parseServed(odd, objectOf("invalid") as never)).rejects.toMatchObject(invalid);
    await expect(declare(odd, objectOf("pending"))).rejects.toMatchObject({ errorClass: "pending", reason: "Waiting" });
    await expect(declare(odd, objectOf("throw"))).rejects.toThrow("thrown by throw");
    await expect(report("wrong")).rejects.toThrow("report of Odd returns something else than it must");
    const logged: { environment?: string[] }[] = [];
    await declare(odd, objectOf("fine"), logged);
    expect(logged).toMatchObject([{ message: "declares", secret: { user: "alex" } }]);
    expect(logged[0]?.environment).toContain("ODD_SETTING");
    expect(logged[0]?.environment).not.toEqual(expect.arrayContaining(["ODD_SECRET"]));
    for (const name of ["KINDSTACK_CLUSTER", "PSQL_PASSWORD"]) expect(logged[0]?.environment).not.toContain(name);
  });

  it("with sdkRuntime is refused where the Automation API would run it, by what to do", async () => {
    const { kinds } = await packages.load([path.join(folder, "odd")]);
    const context = { owner, owned: [], recorded: new Set<string>(), watched: [] };
    const run = async () => runProgram(kinds[1] as AnyKind, objectOf("fine"), context);
    const message = expect.stringMatching(/^Oddsdk has sdkRuntime .* unset KINDSTACK_ENGINE/);
    await expect(run()).rejects.toMatchObject({ reason: "Misconfigured", message });
  });

  it.each(["write", "read", "spawn"])("may not %s outside of its package", async (mode) => {
    const file = path.join(outside, "file");
    fs.writeFileSync(file, "kept");
    await expect(declare(odd, objectOf(mode, mode, { file }))).rejects.toThrow(/restricted|permission/i);
    expect(fs.readFileSync(file, "utf8")).toBe("kept");
  });
});

describe("code that does what a mistake does", () => {
  it.each([
    ["throw", "InternalError"],
    ["rejection", "InternalError"],
    ["timer", "InternalError"],
    ["exit", "ProgramFailed"],
    ["abort", "ProgramFailed"],
    ["message", "ProgramFailed"],
    ["descriptor", "ProgramFailed"],
    ["hang", "ProgramTimedOut"],
    ["loop", "ProgramTimedOut"],
    ["buffers", "OutOfMemory"],
    ["heap", "OutOfMemory"],
  ])("by %s fails its object with %s, and others are served", async (mode, reason) => {
    const kind = await serve();
    const error = await failureOf(declare(kind, objectOf(mode)));
    if (reason === "InternalError") expect(error).toMatchObject({ message: `thrown by ${mode}` });
    else expect(error).toMatchObject({ errorClass: "retryable", reason });
    expect(await declare(kind, objectOf("fine"))).toHaveLength(2);
  });

  it("that looks for a parent process finds none, and signals none", async () => {
    expect(await declare(odd, objectOf("send"))).toHaveLength(2);
    const message = expect.stringContaining("which is not its own process");
    const refused = { errorClass: "terminal", reason: "InvalidProgram", message };
    await expect(declare(odd, objectOf("signal"))).rejects.toMatchObject(refused);
  });

  it("by endless lines of the log keeps the operator from nothing: the rest is left out", async () => {
    const kind = await serve(); // with a budget of its own
    const logged: unknown[] = [];
    expect(await declare(kind, objectOf("flood"), logged)).toHaveLength(2);
    expect(logged.length).toBeLessThan(5_000);
    expect(logged).toContainEqual({ message: expect.stringContaining("the rest is left out") });
  });

  it("by what is too large fails its object, and gives the operator nothing to read", async () => {
    const message = expect.stringContaining("more than 16 MiB");
    const refused = { errorClass: "terminal", reason: "InvalidProgram", message };
    await expect(report("large")).rejects.toMatchObject(refused);
    await expect(declare(odd, objectOf("large"))).rejects.toMatchObject(refused);
    const logged: unknown[] = [];
    expect(await declare(odd, objectOf("long line"), logged)).toHaveLength(2);
    expect(logged).toContainEqual({ message: expect.stringContaining("too large") });
  });

  it("among 1,000 objects that wait fails no other one", async () => {
    const kind = await serve();
    const objects = Array.from({ length: 1_000 }, (_, n) => objectOf(`object-${n}`, n === 500 ? "loop" : "fine"));
    const results = await Promise.allSettled(objects.map(async (object) => kind.report(object, [])));
    const failed = results.filter(({ status }) => status === "rejected");
    expect(failed).toMatchObject([{ reason: { reason: "ProgramTimedOut" } }]);
    expect(results.indexOf(failed[0] ?? expect.fail())).toBe(500);
    // Its code was seen to run: it is called once.
    expect(lines.filter((line) => line.includes("process of a package ended"))).toHaveLength(1);
  });

  it("is called again later for the same object; no other waits, nor does a new spec", async () => {
    const kind = await serve();
    const endings = () => lines.filter((line) => line.includes("process of a package ended")).length;
    const error = await failureOf(declare(kind, objectOf("abort")));
    const before = endings();
    expect(await failureOf(declare(kind, objectOf("abort")))).toBe(error);
    expect(endings()).toBe(before);
    expect(await declare(kind, objectOf("fine"))).toHaveLength(2);
    const edited = objectOf("abort", "fine");
    expect(await declare(kind, { ...edited, metadata: { ...edited.metadata, generation: 2 } })).toHaveLength(2);
    await eventually(async () => {
      await declare(kind, objectOf("abort")).catch(() => undefined);
      expect(endings()).toBeGreaterThan(before);
    });
  });

  it("in a report keeps no program waiting, and no other report", async () => {
    const kind = await serve();
    const loops = Array.from({ length: 3 }, (_, index) => kind.report(objectOf(`loop-${index}`, "loop"), []));
    const settled = Promise.allSettled(loops);
    expect(await declare(kind, objectOf("loop-0", "fine"))).toHaveLength(2);
    expect(await kind.report(objectOf("fine"), [])).toEqual({ mode: "fine" });
    for (const result of await settled) expect(result).toMatchObject({ reason: { reason: "ProgramTimedOut" } });
  });

  it("by a leak fails no object: the process starts afresh", async () => {
    const kind = await serve();
    const pids = new Set<number>();
    for (let index = 0; index < 60; index++) {
      expect(await declare(kind, objectOf(`leak-${index}`, "leak"))).toHaveLength(2);
      for (const pid of packages.pids) pids.add(pid);
    }
    expect(pids.size).toBeGreaterThan(1);
  });
});

describe("the process of a package", () => {
  it("ends when nothing is asked of it, and starts again when it is", async () => {
    const kind = await serve(50);
    await eventually(() => expect(packages.pids).toEqual([]));
    expect(await kind.report(objectOf("fine"), [])).toEqual({ mode: "fine" });
    expect(packages.pids).toHaveLength(1);
    await eventually(() => expect(packages.pids).toEqual([]));
  });

  it("starts with no other code than what is served, and ends when nothing of it is", async () => {
    const kind = await serve(50);
    const file = path.join(folder, "odd/index.js");
    const answer = async () => kind.report(objectOf("fine"), []);
    expect(await answer()).toEqual({ mode: "fine" });
    fs.writeFileSync(file, CODE.replace("{ mode: spec.mode };", '{ mode: "edited" };'));
    try {
      await declare(kind, objectOf("abort")).catch(() => undefined);
      const message = expect.stringContaining("files have changed");
      await expect(answer()).rejects.toMatchObject({ errorClass: "retryable", reason: "ProgramFailed", message });
      fs.writeFileSync(file, CODE);
      await eventually(async () => expect(await answer()).toEqual({ mode: "fine" }));

      fs.writeFileSync(file, CODE.replace("{ mode: spec.mode };", '{ mode: "edited" };'));
      packages.keep([]);
      await eventually(() => expect(packages.pids).toEqual([]));
    } finally {
      fs.writeFileSync(file, CODE);
    }
  });

  it("stays while its files are gone, as while they are installed again", async () => {
    const kind = await serve(50);
    const [file, away] = ["odd", "away"].map((name) => path.join(folder, name)) as [string, string];
    expect(await kind.report(objectOf("fine"), [])).toEqual({ mode: "fine" });
    const [pid] = packages.pids;
    fs.renameSync(file, away);
    try {
      await new Promise((resolve) => setTimeout(resolve, 200)); // several times as long as it rests before it ends
      expect(packages.pids).toEqual([pid]);
      expect(await kind.report(objectOf("fine"), [])).toEqual({ mode: "fine" });
    } finally {
      fs.renameSync(away, file);
    }
    await eventually(() => expect(packages.pids).toEqual([]));
  });

  it("stays while its files differ from those that it has loaded", async () => {
    let [changed, asked] = [false, 0];
    const isChanged = () => {
      asked++;
      return changed;
    };
    const entry = path.join(folder, "odd/index.js");
    const options = { name: "odd", entry, environment: process.env, limits: LIMITS, idleMs: 20, isChanged, logger };
    const runner = new PackageRunner(options);
    const call = runner.call({ type: "describe" }, [], { what: "the package", limitMs: undefined, isPure: true });
    const { pid } = runner;
    await call;
    [changed, asked] = [true, 0];
    await eventually(() => expect(asked).toBeGreaterThan(3));
    expect(runner.pid).toBe(pid);
    changed = false;
    await eventually(() => expect(runner.pid).toBeUndefined());
  });

  it("ends with the operator's last word", async () => {
    const kind = await serve();
    await kind.report(objectOf("fine"), []);
    const [pid = 0] = packages.pids;
    packages.close();
    await eventually(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"));
    await expect(Promise.resolve(kind.report(objectOf("fine"), []))).rejects.toMatchObject({ reason: "Interrupted" });
  });
});

it("starts one process to learn of its kinds, unless their settings may depend on what they declare of the environment", async () => {
  const plain = path.join(folder, "plain");
  fs.cpSync(path.join(folder, "odd"), plain, { recursive: true });
  fs.writeFileSync(path.join(plain, "index.js"), CODE.replace("settings:", "// settings:"));
  for (const [module, pids] of Object.entries({ plain: 0, odd: 1 })) {
    const kind = await serve(undefined, module);
    expect(packages.pids).toHaveLength(pids);
    await kind.report(objectOf("fine"), []);
    expect(packages.pids).toHaveLength(1);
  }
});

it("ends its process with the operator's, also where that is killed while the code loops", async () => {
  const script = `
    const { Packages } = require(${JSON.stringify(path.join(ROOT, "dist/src/packages/packages.js"))});
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const packages = new Packages({ limits: ${JSON.stringify(LIMITS)}, environment: process.env, logger: log });
    packages.load([${JSON.stringify(path.join(folder, "odd"))}]).then(({ kinds: [kind] }) => {
      const object = { metadata: { name: "a", uid: "a", generation: 1 }, spec: { mode: "loop" } };
      console.log(packages.pids[0]);
      kind.report(object, []).catch(() => undefined);
    });
  `;
  const operator = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(operator.stdout, "data")) as [Buffer];
  const pid = Number(line.toString());
  const before = (await cpuSeconds(pid)).own;
  await eventually(async () => expect((await cpuSeconds(pid)).own).toBeGreaterThan(before + 0.3));
  operator.kill("SIGKILL");
  await eventually(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"));
});

describe("a provider of a package", () => {
  const contextOf = (log: unknown[] = [], name = "a") => {
    const end = new AbortController();
    const info = (message: string, fields?: object) => void log.push({ message, ...fields });
    const object = { apiVersion: "odd.example.com/v1", kind: "Odd", name, uid: name };
    const fence = { check: () => {}, signal: end.signal };
    const told = { log: { debug: info, info, warn: info, error: info }, progress: info };
    return { context: { fence, signal: end.signal, ...told, object }, end };
  };
  const providerOf = (kind: AnyKind) => kind.capabilities.providers?.[0]?.provider ?? expect.fail("it has no provider");

  it("is told of its update, and writes what the installation lets it write", async () => {
    const kind = await serve();
    const log: unknown[] = [];
    const file = path.join(shelf, "a");
    const made = await providerOf(kind).create({ file }, contextOf(log).context);
    expect(made).toMatchObject({ id: file, outs: { file } });
    expect(fs.readFileSync(file, "utf8")).toBe("made");
    expect(log).toEqual([{ message: "made", of: "a" }, { message: "written" }]);
    await expect(providerOf(kind).create({ file: path.join(outside, "b") }, contextOf().context)).rejects.toThrow();
  });

  it("writes nothing when its update has ended, or the operator has lost its Lease", async () => {
    const kind = await serve();
    const { context, end } = contextOf();
    const waiting = providerOf(kind).create({ file: path.join(shelf, "c"), mode: "signal" }, context);
    await eventually(() => expect(packages.pids).toHaveLength(1));
    end.abort(new Error("interrupted"));
    await expect(waiting).rejects.toThrow("interrupted");
    packages.allow(0);
    const late = providerOf(kind).create({ file: path.join(shelf, "c") }, contextOf().context);
    await expect(late).rejects.toMatchObject({ reason: "LeaseLost" });
    expect(fs.existsSync(path.join(shelf, "c"))).toBe(false);
  });

  it("that ends its process fails its object alone; a release passes over that", async () => {
    const kind = await serve();
    const create = (mode: string, name: string) =>
      providerOf(kind).create({ file: path.join(shelf, name), mode }, contextOf([], name).context);
    const waits = failureOf(create("wait", "other"));
    // Either may have ended the process.
    for (const failed of [failureOf(create("abort", "d")), waits]) {
      expect(await failed).toMatchObject({ errorClass: "retryable", reason: "Interrupted" });
    }
    await expect(create("abort", "d")).rejects.toMatchObject({ reason: "ProgramFailed" });
    expect(await create("wait", "other")).toMatchObject({ id: path.join(shelf, "other") });
    await providerOf(kind).release("d", { mode: "abort" }, contextOf([], "d").context);
  });

  it("removes orphans within the right to write", async () => {
    const kind = await serve(50);
    const file = path.join(shelf, "e");
    const context = { ...contextOf().context, fence: noFence() };
    await kind.capabilities.external?.removeUntracked(owner, [{ file }], { release: false }, context);
    expect(fs.readFileSync(file, "utf8")).toBe("u");
    await eventually(() => expect(packages.pids).toEqual([]));
  });
});
