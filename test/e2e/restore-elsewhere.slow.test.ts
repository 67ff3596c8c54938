import fs from "node:fs";
import path from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { KubernetesClient, known, type Manifest } from "../../providers/kubernetes/client";
import { type DevCluster, removeDevCluster, startDevCluster } from "../../src/dev/cluster";
import { eventually } from "../../src/testing/eventually";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { controlPlane } from "../control-plane";
import { useDirectory } from "../directories";
import { untilReady } from "./conditions";
import { podSet, tenant, uniqueName } from "./manifests";
import { apply } from "./objects";
import { kindstack, TestOperator, useOperator } from "./operator";

/* A backup of one cluster, restored for another one, as in docs/operate.md: its objects have other UIDs, and nothing is made. */
const here = useOperator();
const directory = useDirectory();
const backup = path.join(directory, "backup");
const name = uniqueName("moved");
const objects = [tenant(name, { namespaces: [name] }), podSet(name, 2)];
const passphrase = { PULUMI_CONFIG_PASSPHRASE_FILE: controlPlane().env.PULUMI_CONFIG_PASSPHRASE_FILE ?? "" };
let elsewhere: DevCluster;
let client: KubernetesClient;
let there: TestOperator;

beforeAll(async () => {
  for (const object of objects) await apply(object);
  for (const object of objects) await untilReady(object);
  kindstack(["backup", backup], { ...passphrase, PULUMI_BACKEND_URL: `file://${here.stateDirectory}` });

  elsewhere = await startDevCluster({ dir: path.join(directory, "cluster") });
  const config = new KubeConfig();
  config.loadFromFile(elsewhere.kubeconfig);
  client = new KubernetesClient(config);
  there = new TestOperator({ env: { ...elsewhere.env, ...passphrase, KUBECONFIG: elsewhere.kubeconfig } });
});
afterAll(async () => {
  await there?.dispose();
  await client?.close();
  await elsewhere?.stop();
  await removeDevCluster(elsewhere.dir);
});

const get = ({ apiVersion, kind, metadata: { name = "", namespace } }: Manifest) =>
  known(client.get({ apiVersion, kind }, name, namespace));

it("is used by the operator there once it has claimed the backend, and each object has its former stack", async () => {
  const environment = { ...passphrase, PULUMI_BACKEND_URL: `file://${there.stateDirectory}` };
  fs.mkdirSync(there.stateDirectory, { recursive: true });
  kindstack(["restore", backup], environment);
  await there.start({ env: environment });
  await eventually(() => expect(there.log).toContain("it has stacks of objects that are not in this cluster"));
  kindstack(["state", "claim", "-n", "default"], { ...environment, KUBECONFIG: elsewhere.kubeconfig });

  for (const object of objects) await client.apply(object);
  for (const object of objects) {
    await eventually(async () => {
      const live = await get(object);
      expect(live && findCondition(statusOf(live).conditions, "Ready")).toMatchObject({ status: "True" });
    });
  }

  expect(await get({ apiVersion: "v1", kind: "Namespace", metadata: { name } })).toBeDefined();
  const pods = await client.list({ apiVersion: "v1", kind: "Pod" }, { namespace: "default" });
  expect(pods.items).toHaveLength(2);
  const orphaned = ["stacks", "--orphaned"];
  expect(kindstack(orphaned, { ...environment, KUBECONFIG: elsewhere.kubeconfig })).toBe("each stack has its object\n");
});
