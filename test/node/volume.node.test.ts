import fs from "node:fs";
import path from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, it } from "vitest";
import { packageRoot } from "../../src/package";
import {
  areReady,
  install,
  kubectl,
  NAMESPACE,
  node,
  onlyPod,
  prepareInstallation,
  rolledOut,
  uninstall,
} from "./installation";
import { blocksOf } from "./pages";

/* State in a volume: kept over a new Pod, backed up and restored by the commands of docs/operate.md. */

const WRITER = JSON.stringify({
  apiVersion: "demo.yash.com/v1",
  kind: "PostgresWriter",
  metadata: { name: "kept", namespace: "default" },
  spec: { table: "students", name: "kept", age: 20, country: "canada" },
});
const volume = path.join(node.directory, "volume");
let values: string;

beforeAll(async () => {
  fs.mkdirSync(volume);
  await kubectl("apply -f -", JSON.stringify(localVolume()));
  values = await prepareInstallation({ backendFromSecret: false });
  await install(values);
  await rolledOut();
});
afterAll(async () => {
  await uninstall(values);
  await kubectl("delete persistentvolume local --ignore-not-found");
});

/** Runs commands of a page in a folder, as a reader would. */
async function shell(commands: string): Promise<string> {
  const { stdout } = await execa("bash", ["-euo", "pipefail", "-c", commands], {
    cwd: node.directory,
    env: { KUBECONFIG: node.kubeconfig },
  });
  return stdout;
}

it("outlives a Pod", async () => {
  await kubectl("apply -f -", WRITER);
  await areReady(["postgreswriters/kept@default"]);
  await kubectl(`delete pod -n ${NAMESPACE} ${(await onlyPod()).metadata.name}`);
  await rolledOut();
  await kubectl(["patch", "postgreswriter", "kept", "--type=merge", "-p", '{"spec":{"age":21}}']);
  await areReady(["postgreswriters/kept@default"]);
});

it("is backed up and restored by the page", async () => {
  await shell(blocksOf("operate.md", "sh", "kindstack backup -"));
  const backup = fs.readFileSync(path.join(node.directory, "state-backup.jsonl"), "utf8");
  expect(backup).toContain("backup.json");
  const stacks = backup.trim().split("\n").length - 1;
  expect(stacks).toBeGreaterThan(0);

  await kubectl(`scale deployment/kindstack -n ${NAMESPACE} --replicas=0`);
  await kubectl(`wait --for=delete pod -l app.kubernetes.io/component=operator -n ${NAMESPACE} --timeout=120s`);
  for (const entry of fs.readdirSync(volume)) fs.rmSync(path.join(volume, entry), { recursive: true });
  fs.copyFileSync(path.join(packageRoot, "docs/examples/restore.yaml"), path.join(node.directory, "restore.yaml"));
  await shell(blocksOf("operate.md", "sh", "kubectl attach"));

  await rolledOut();
  await kubectl(["patch", "postgreswriter", "kept", "--type=merge", "-p", '{"spec":{"age":22}}']);
  await areReady(["postgreswriters/kept@default"]);
  await kubectl("delete postgreswriter kept --timeout=60s"); // destroys what the restored state knows
});

function localVolume() {
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: "local" },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Delete",
      storageClassName: "local",
      local: { path: volume },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: ["node-1"] }] },
          ],
        },
      },
    },
  };
}
