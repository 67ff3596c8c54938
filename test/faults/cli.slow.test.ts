import fs from "node:fs";
import path from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { resolveBinary } from "../../src/toolchain/resolve";
import { FINALIZER } from "../../stacks/contract/object";
import {
  apply,
  conditionOf,
  find,
  get,
  namespace,
  remove,
  tenant,
  uniqueName,
  untilCondition,
  untilGone,
  untilReady,
} from "../e2e/objects";
import { useOperator } from "../e2e/operator";

const UPDATE_TIMEOUT_S = 10;

/** A CLI that misbehaves, as a script that is run instead of it. */
const SCRIPTS = {
  "that hangs": "exec sleep 3600",
  "that hangs and cannot be interrupted": "trap '' INT TERM; while :; do sleep 1; done",
  "that prints rubbish and fails": "head -c 100000 /dev/urandom; head -c 100000 /dev/urandom >&2; exit 3",
  "that prints rubbish and claims success": "head -c 100000 /dev/urandom; echo '{\"result\": null}'; exit 0",
  "that writes rubbish where it should tell what it did":
    'while [ "$1" != --event-log ]; do shift; done; head -c 100000 /dev/urandom > "$2"; printf "\\n{}\\nnull\\n[1]\\n" >> "$2"; exit 0',
  "that is killed": "kill -KILL $$",
};

type Misbehaviour = keyof typeof SCRIPTS;
const MISBEHAVIOURS = Object.keys(SCRIPTS) as Misbehaviour[];

const REASONS: Partial<Record<Misbehaviour, string>> = {
  "that hangs": "Timeout",
  "that hangs and cannot be interrupted": "Timeout",
  "that is killed": "Killed",
};

/** Stands before the CLI: a call with the name of a fault in its arguments is the fault's to answer. */
class FaultyCli {
  readonly script = path.join(fs.mkdtempSync(path.join(process.env.TMPDIR ?? "/tmp", "kindstack-cli-")), "pulumi");
  readonly #faults = `${this.script}.faults`;

  async make(): Promise<void> {
    const pulumi = await resolveBinary("pulumi");
    fs.mkdirSync(this.#faults);
    const choose = `for fault in "$0".faults/*; do case "$*" in *"\${fault##*/}"*) . "$fault" ;; esac; done`;
    fs.writeFileSync(this.script, `#!/bin/sh\n${choose}\nexec '${pulumi}' "$@"\n`, { mode: 0o755 });
  }

  misbehave(name: string, script: string): void {
    fs.writeFileSync(path.join(this.#faults, name), script);
  }

  behave(name: string): void {
    fs.rmSync(path.join(this.#faults, name));
  }

  remove(): void {
    fs.rmSync(path.dirname(this.script), { recursive: true });
  }
}

const cli = new FaultyCli();
beforeAll(async () => {
  await cli.make();
  return () => cli.remove();
});
useOperator({
  args: ["--concurrency", "16", "--update-timeout", String(UPDATE_TIMEOUT_S)],
  env: { KINDSTACK_PULUMI: cli.script },
});

describe.concurrent.each(MISBEHAVIOURS)("a CLI %s", { timeout: 180_000 }, (misbehaviour) => {
  const script = SCRIPTS[misbehaviour];

  it("makes its object say so, and the object is made when it is well", async () => {
    const object = tenant(uniqueName("tenant"));
    cli.misbehave(object.metadata.name as string, script);
    await apply(object);
    const failed = await failure(object);
    expect(conditionOf(failed, "Reconciling")).toMatchObject({ status: "True", reason: "Retrying" });
    expect(conditionOf(failed, "Ready").reason).toBe(REASONS[misbehaviour] ?? "UpdateFailed");

    cli.behave(object.metadata.name as string);
    await untilReady(object);
    expect(await find(namespace(object.metadata.name as string))).toBeDefined();
  });

  it("does not lose what an object made when the object is deleted", async () => {
    const object = tenant(uniqueName("tenant"));
    await apply(object);
    await untilReady(object);
    cli.misbehave(object.metadata.name as string, script);
    await remove(object);
    const failed = await failure(object, "DeletionFailed");
    expect(failed.metadata.finalizers).toEqual([FINALIZER]);
    expect((await get(namespace(object.metadata.name as string))).metadata.deletionTimestamp).toBeUndefined();

    cli.behave(object.metadata.name as string);
    await untilGone(object);
    await untilGone(namespace(object.metadata.name as string));
  });
});

/** Waits until an object's update has failed; an update of a CLI that hangs takes its time. */
function failure(object: Manifest, reason?: string): Promise<LiveObject> {
  return eventually(() => untilCondition(object, "Ready", "False", reason), 60_000);
}
