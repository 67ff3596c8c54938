import { afterAll, beforeAll, expect, it } from "vitest";
import { install, kubectl, onlyPod, prepareInstallation, rolledOut, uninstall } from "./installation";
import { createWriters, deleteWriters, settled } from "./load";
import { operatorMemory } from "./processes";

/* What the installation gives by default is enough for a burst. */

const LOAD = 5_000;
const BURST_MS = 600_000;
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

it(`${LOAD} objects at once fit into the default memory limit`, { timeout: 3 * BURST_MS }, async () => {
  const before = await onlyPod();
  const idle = await operatorMemory();
  await createWriters("burst", LOAD);
  await settled(LOAD, BURST_MS);

  const after = await operatorMemory();
  console.log(`memory: ${mib(idle.used)} MiB at rest, at most ${mib(after.peak)} MiB in the burst`);
  expect(after.kills).toBe(0);
  expect((await onlyPod()).metadata.uid).toBe(before.metadata.uid);
  expect((await onlyPod()).status.containerStatuses?.[0]?.restartCount).toBe(0);
  await deleteWriters(BURST_MS);
});

function mib(bytes: number): number {
  return Math.round(bytes / 2 ** 20);
}
