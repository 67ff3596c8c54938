import fs from "node:fs";
import path from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { resolveBinary } from "../../src/toolchain/resolve";
import { FINALIZER } from "../../stacks/contract/object";
import { applyUntilReady, conditionOf, untilCondition, untilGone, untilReady } from "../e2e/conditions";
import { namespace, tenant, uniqueName } from "../e2e/manifests";
import { apply, find, get, remove } from "../e2e/objects";
import { useOperator } from "../e2e/operator";

const UPDATE_TIMEOUT_S = 10;

/** What an engine does in place of an answer about a stack. */
const FAULTS = {
  "that hangs": "setTimeout(() => {}, 1e9)",
  "that prints rubbish": "process.stdout.write(crypto.randomBytes(100_000)), process.stdout.write('\\n')",
  "that claims success and tells nothing": "answer(id, { ok: true })",
  "that answers with another form": "answer(id, { exists: 'yes', succeeded: 'yes', phasesMs: 1 })",
  "that is killed": "process.kill(process.pid, 'SIGKILL')",
};

type Misbehaviour = keyof typeof FAULTS;
const MISBEHAVIOURS = Object.keys(FAULTS) as Misbehaviour[];

const REASONS: Partial<Record<Misbehaviour, string>> = {
  "that hangs": "Timeout",
  "that prints rubbish": "Killed",
  "that is killed": "Killed",
};

/** Stands before the engine: a request with the name of a fault in its stack's is the fault's to answer. */
class FaultyEngine {
  readonly script = path.join(fs.mkdtempSync(path.join(process.env.TMPDIR ?? "/tmp", "kindstack-engine-")), "engine");
  readonly #faults = `${this.script}.faults`;

  async make(): Promise<void> {
    const engine = await resolveBinary("engine");
    fs.mkdirSync(this.#faults);
    const proxy = `${this.script}.mjs`;
    fs.writeFileSync(
      proxy,
      `import { spawn } from "node:child_process";
import crypto from "node:crypto";
import fs from "node:fs";
import { createInterface } from "node:readline";
const child = spawn(${JSON.stringify(engine)}, process.argv.slice(2), { stdio: ["pipe", "pipe", "inherit"] });
const answer = (id, result) => process.stdout.write(JSON.stringify({ id, result }) + "\\n");
createInterface({ input: process.stdin })
  .on("line", (line) => {
    const { id, method, params } = JSON.parse(line);
    const fault = ["up", "destroy"].includes(method) &&
      fs.readdirSync(${JSON.stringify(this.#faults)}).find((name) => params.stack.includes(name));
    if (fault) new Function("id", "answer", "crypto", "process", fs.readFileSync(${JSON.stringify(this.#faults)} + "/" + fault, "utf8"))(id, answer, crypto, process);
    else child.stdin.write(line + "\\n");
  })
  .on("close", () => child.stdin.end());
child.stdout.pipe(process.stdout);
child.on("exit", (code) => process.exit(code ?? 1));
`,
    );
    const version = `case "$1" in --version) exec '${engine}' --version ;; esac`;
    const run = `exec '${process.execPath}' '${proxy}' "$@"`;
    fs.writeFileSync(this.script, `#!/bin/sh\n${version}\n${run}\n`, { mode: 0o755 });
  }

  misbehave(name: string, fault: string): void {
    fs.writeFileSync(path.join(this.#faults, name), fault);
  }

  behave(name: string): void {
    fs.rmSync(path.join(this.#faults, name));
  }

  remove(): void {
    fs.rmSync(path.dirname(this.script), { recursive: true });
  }
}

const engine = new FaultyEngine();
beforeAll(async () => {
  await engine.make();
  return () => engine.remove();
});
useOperator({
  args: ["--concurrency", "16", "--update-timeout", String(UPDATE_TIMEOUT_S)],
  env: { KINDSTACK_ENGINE: engine.script },
});

describe.concurrent.each(MISBEHAVIOURS)("an engine %s", (misbehaviour) => {
  const fault = FAULTS[misbehaviour];

  it("makes its object say so, and the object is made when it is well", async () => {
    const object = tenant(uniqueName("tenant"));
    engine.misbehave(object.metadata.name as string, fault);
    await apply(object);
    const failed = await failure(object);
    expect(conditionOf(failed, "Reconciling")).toMatchObject({ status: "True", reason: "Retrying" });
    // One process serves all objects: a neighbour's fault may have killed it first.
    const reason = async () => conditionOf(await get(object), "Ready").reason;
    await expect.poll(reason).toBe(REASONS[misbehaviour] ?? "UpdateFailed");

    engine.behave(object.metadata.name as string);
    await untilReady(object);
    expect(await find(namespace(object.metadata.name as string))).toHaveProperty("metadata.uid");
  });

  it("does not lose what an object made when the object is deleted", async () => {
    const object = tenant(uniqueName("tenant"));
    await applyUntilReady(object);
    engine.misbehave(object.metadata.name as string, fault);
    await remove(object);
    const failed = await failure(object, "DeletionFailed");
    expect(failed.metadata.finalizers).toEqual([FINALIZER]);
    expect((await get(namespace(object.metadata.name as string))).metadata.deletionTimestamp).toBeUndefined();

    engine.behave(object.metadata.name as string);
    await untilGone(object);
    await untilGone(namespace(object.metadata.name as string));
  });
});

/** Waits until an object's update has failed. */
function failure(object: Manifest, reason?: string): Promise<LiveObject> {
  return untilCondition(object, "Ready", "False", reason);
}
