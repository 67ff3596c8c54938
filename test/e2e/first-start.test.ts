import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { afterAll, expect, it } from "vitest";
import { known } from "../../providers/kubernetes/client";
import { stopDevCluster } from "../../src/dev/cluster";
import { adminClient } from "../../src/dev/control-plane";
import { layoutOf } from "../../src/dev/layout";
import { eventually } from "../../src/testing/eventually";
import { resolveBinaries } from "../../src/toolchain/resolve";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { useDirectory } from "../directories";
import { MAIN } from "./documentation";

/*
 * The order of a first start, on which controllers, scheduler and nodes are there minutes later than the operator: with tools
 * that begin only when the test lets them.
 */

const directory = useDirectory();
const dir = path.join(directory, "dev");
const gate = path.join(directory, "gate");
const LATE = ["kube-controller-manager", "kube-scheduler", "kwok"] as const;
fs.chmodSync(directory, 0o711); // PostgreSQL may run as another user

let dev: ChildProcess | undefined;
afterAll(async () => {
  dev?.kill("SIGKILL");
  await stopDevCluster(dir);
});

/** Variables that name programs which wait for the gate, but tell their version at once. */
async function lateTools(): Promise<Record<string, string>> {
  const binaries = await resolveBinaries(LATE);
  return Object.fromEntries(
    LATE.map((name) => {
      const file = path.join(directory, name);
      const wait = `case "$*" in *--version*) ;; *) until [ -e '${gate}' ]; do sleep 0.1; done ;; esac`;
      fs.writeFileSync(file, `#!/bin/sh\n${wait}\nexec '${binaries[name]}' "$@"\n`, { mode: 0o755 });
      return [`KINDSTACK_${name.toUpperCase().replaceAll("-", "_")}`, file];
    }),
  );
}

it("ends with all samples Ready, and with what was applied before the controllers ran", async () => {
  dev = spawn(process.execPath, [MAIN, "dev", "--detach", "--dir", dir], {
    env: { ...process.env, ...(await lateTools()) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(dev, "exit");
  let [printed, told] = ["", ""];
  dev.stdout?.on("data", (bytes) => {
    printed += bytes;
  });
  dev.stderr?.on("data", (bytes) => {
    told += bytes;
  });
  // What needs no controller is Ready before they are there.
  for (const sample of ["Tenant tenant-sample", "PostgresWriter default/sample-student"]) {
    await eventually(() => expect(told).toContain(`${sample}: Ready after `));
  }
  expect(told).not.toContain("PodSet");

  const client = adminClient(layoutOf(dir).kubeconfig);
  try {
    const podSet = { apiVersion: "batch.tutorial.kubebuilder.io/v1", kind: "PodSet" };
    await client.create({ ...podSet, metadata: { name: "early", namespace: "default" }, spec: { replicas: 1 } });
    const ready = async () => {
      const object = await known(client.get(podSet, "early", "default"));
      return object && findCondition(statusOf(object).conditions, "Ready");
    };
    await eventually(async () =>
      expect(await ready()).toMatchObject({ status: "False", message: expect.stringContaining("service account") }),
    );
    fs.writeFileSync(gate, "");
    expect(await ended).toEqual([0, null]);
    await eventually(async () => expect(await ready()).toMatchObject({ status: "True" }));
  } finally {
    await client.close();
  }
  expect(printed).toContain("\nReady. In a shell:\n");
  expect(printed).not.toMatch(/ False |Not Ready/);
  for (const sample of ["PodSet default/podset-sample", "Memcached default/memcached-sample"]) {
    expect(told).toContain(`${sample}: Ready after `);
  }
});
