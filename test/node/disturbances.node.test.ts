import fs from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../src/testing/eventually";
import {
  install,
  kubectl,
  logLines,
  NAMESPACE,
  node,
  onlyPod,
  pods,
  prepareInstallation,
  rolledOut,
  uninstall,
} from "./installation";
import { countWriters, createWriters, deleteWriters, Hammer, SETTLED_MS, settled } from "./load";
import { canConnect, childrenOf, componentPid, operatorMemory, operatorPid } from "./processes";

const LOAD = 300;
/** Of the container by default. */
const LIMIT_BYTES = 2 ** 30;
const OUTAGE_MS = 40_000;
const TENANT = JSON.stringify({
  apiVersion: "capsule.clastix.io/v1alpha1",
  kind: "Tenant",
  metadata: { name: "gas" },
  spec: { owner: { kind: "User", name: "bob" }, namespaceQuota: 10_000 },
});
let values: string;

beforeAll(async () => {
  values = await prepareInstallation();
  await install(values);
  await rolledOut();
});
afterAll(async () => {
  await kubectl("delete namespace load-0 load-1 load-2 --ignore-not-found --wait=false");
  await uninstall(values);
});

/** Of the engine that runs. */
function enginePid(): Promise<number> {
  return eventually(async () => {
    const [child] = childrenOf(await operatorPid());
    if (child === undefined) throw new Error("no engine runs");
    return child;
  });
}

describe("under load, the operator", () => {
  it.each<[string, () => Promise<unknown>]>([
    ["is deleted", async () => kubectl(`delete pod -n ${NAMESPACE} ${(await onlyPod()).metadata.name} --wait=false`)],
    ["is rolled out anew", () => kubectl(`rollout restart deployment/kindstack -n ${NAMESPACE}`)],
    ["has its container killed", async () => process.kill(await operatorPid(), "SIGKILL")],
    [
      "has its engine killed",
      async () => {
        process.kill(await enginePid(), "SIGKILL");
      },
    ],
    [
      "is evicted by a drain",
      async () => {
        const { nodeName } = (await onlyPod()).spec;
        await kubectl(`drain ${nodeName} --ignore-daemonsets --delete-emptydir-data --force --timeout=120s`);
        await kubectl(`uncordon ${nodeName}`);
        await eventually(async () => expect((await onlyPod()).spec.nodeName).not.toBe(nodeName), SETTLED_MS);
      },
    ],
  ])("loses nothing when it %s", async (name, disturb) => {
    const prefix = name.replaceAll(/\W+/g, "-");
    const created = createWriters(prefix, LOAD);
    await delay(3_000); // in the middle of it
    await disturb();
    await created;
    await rolledOut();
    await settled(LOAD);
    await deleteWriters();
    expect(await countWriters()).toEqual({ objects: 0, ready: 0, rows: 0 });
  });

  it("says that its engine lacks memory, and loses nothing", async () => {
    const created = createWriters("memory", LOAD);
    fs.writeFileSync(`/proc/${await enginePid()}/oom_score_adj`, "1000"); // the kernel chooses it
    const memory = await operatorMemory();
    memory.squeeze();
    const isWholeContainer = await eventually(async () => {
      const reason = (await onlyPod()).status.containerStatuses?.[0]?.lastState.terminated?.reason;
      if (reason === "OOMKilled") return true; // as newer kernels do
      if ((await operatorMemory()).kills === memory.kills) throw new Error("nothing was killed");
      return false;
    }, SETTLED_MS);
    if (!isWholeContainer) memory.limit(LIMIT_BYTES);
    await created;
    await rolledOut();
    await settled(LOAD);
    if (!isWholeContainer) expect(JSON.stringify(await logLines())).toContain("killed for lack of memory");
    await deleteWriters();
  });

  it.each([
    ["API server", "kube-apiserver"],
    ["DNS", "coredns"],
  ])("goes on where it was when the %s was away", async (_name, program) => {
    const before = await onlyPod();
    await createWriters(`away-${program}`, LOAD);
    const pid = componentPid(program);
    process.kill(pid, "SIGSTOP");
    await delay(OUTAGE_MS);
    process.kill(pid, "SIGCONT");
    await settled(LOAD);
    await deleteWriters();
    expect((await onlyPod()).metadata.uid).toBe(before.metadata.uid);
  });
});

it("rollouts of two replicas answer every request of tenants' owners", async () => {
  await kubectl("apply -f -", TENANT);
  await kubectl("wait --for=condition=Ready tenant.capsule/gas --timeout=60s");
  await kubectl(`scale deployment/kindstack -n ${NAMESPACE} --replicas=2`);
  await rolledOut();
  const hammer = new Hammer("bob", "gas");
  for (let rollout = 0; rollout < 5; rollout++) {
    await kubectl(`rollout restart deployment/kindstack -n ${NAMESPACE}`);
    await rolledOut();
  }
  // The last of the old Pods.
  await eventually(async () => expect(await pods()).toHaveLength(2), SETTLED_MS);
  await delay(10_000);
  await hammer.stop();
  expect(hammer.failures).toEqual([]);
  expect(hammer.requests).toBeGreaterThan(100);
  await kubectl(`scale deployment/kindstack -n ${NAMESPACE} --replicas=1`);
  await onlyPod();
}, 600_000);

it("the NetworkPolicy lets the operator reach the database and nothing else of its host", async () => {
  const pid = await operatorPid();
  expect(await canConnect(pid, node.databaseAddress, 5432)).toBe(true);
  // The network plugin learns of a new Pod a moment after it runs.
  await eventually(async () => expect(await canConnect(pid, node.databaseAddress, 10250)).toBe(false));
});
