import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isApiError, known, type LiveObject, type Manifest } from "../../../providers/kubernetes/client";
import { refuseSecondInstallation } from "../../../src/operator/install";
import { eventually } from "../../../src/testing/eventually";
import { DEFINITION_TYPE } from "../../../stacks/contract/crd";
import { INSTALLED_IN_LABEL } from "../../../stacks/contract/installation";
import { installedDefinitions } from "../../../stacks/contract/installed-definitions";
import { kindName } from "../../../stacks/contract/kind";
import { objectId } from "../../../stacks/contract/object";
import { capsuleTenant } from "../../../stacks/kinds/capsule-tenant/kind";
import { podSet } from "../../../stacks/kinds/podset/kind";
import { installedIn, platformManifests } from "../../../stacks/platform/manifests";
import { parseConfiguration } from "../../../stacks/platform/parse-configuration";
import { missingPrerequisites } from "../../../stacks/platform/prerequisites";
import { controlPlane } from "../../control-plane";
import { TestCluster } from "../../providers/kubernetes/test-cluster";

const KINDS = [podSet, capsuleTenant];
const isDefinition = ({ kind }: Manifest) => kind === DEFINITION_TYPE.kind;

const cluster = TestCluster.use();
let other: TestCluster;
/** What is installed in each namespace, but for what would run. */
let [first, second]: [Manifest[], Manifest[]] = [[], []];

beforeAll(async () => {
  other = await TestCluster.open(controlPlane());
  [first, second] = [await manifestsIn(cluster.namespace), await manifestsIn(other.namespace)];
  for (const manifest of first) await cluster.client.apply(manifest);
});
afterAll(async () => {
  for (const manifest of [...first, ...second]) {
    if (!isDefinition(manifest)) await remove(manifest);
    else {
      await release(manifest);
      await setLabel(manifest, null);
    }
  }
  await other.close();
});

const configurationIn = (namespace: string) =>
  parseConfiguration({ namespace, passphrase: "p", proxy: "true", networkPolicy: "false" }, "1.2.3");

async function manifestsIn(namespace: string): Promise<Manifest[]> {
  const manifests = await platformManifests(configurationIn(namespace), KINDS);
  return manifests.filter(({ kind }) => !["Namespace", "Deployment", "PersistentVolumeClaim"].includes(kind));
}

const remove = ({ apiVersion, kind, metadata: { name = "", namespace } }: Manifest) =>
  cluster.client.delete({ apiVersion, kind }, name, namespace);

const find = ({ apiVersion, kind, metadata: { name = "", namespace } }: Manifest) =>
  known(cluster.client.get({ apiVersion, kind }, name, namespace));

/** `kubectl label --overwrite crd <name> kindstack.dev/installed-in=` */
const release = (manifest: Manifest) => setLabel(manifest, "");

const setLabel = ({ metadata: { name = "" } }: Manifest, value: string | null) =>
  cluster.client.mergePatch(DEFINITION_TYPE, name, undefined, {
    metadata: { labels: { [INSTALLED_IN_LABEL]: value } },
  });

/** Does something to each manifest, and goes on after a refusal, as kubectl does. @returns the refusals by object */
async function refusals(manifests: readonly Manifest[], act: (manifest: Manifest) => Promise<unknown>) {
  const refused = new Map<string, string>();
  for (const manifest of manifests) {
    await act(manifest).catch((error) => {
      if (!isApiError(error, 403)) throw error;
      refused.set(objectId(manifest), error.message);
    });
  }
  return refused;
}

const applied = (manifest: Manifest) => cluster.client.apply(manifest, { fieldManager: "kubectl" });
const shared = (kinds: RegExp) => second.filter(({ kind }) => kinds.test(kind)).map(objectId);

describe("a second installation", () => {
  /** All that the first one has, with what it says. */
  let before: (LiveObject | undefined)[];
  beforeAll(async () => {
    // A policy is in force a moment after it was applied.
    const [role] = second.filter(({ kind }) => kind === "ClusterRole");
    const path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    const create = () => cluster.client.json("POST", path, { body: role, query: { dryRun: "All" } });
    await eventually(() => expect(create()).rejects.toThrow("has one installation"));
    before = await Promise.all(first.map(find));
    expect(before).not.toContain(undefined);
  });

  /** What `--check` says of another installation. */
  const problems = async (namespace: string) =>
    (await missingPrerequisites(configurationIn(namespace), KINDS, cluster.client)).filter((problem) =>
      problem.includes("one installation"),
    );
  const inUse = (namespace: string) =>
    `Kindstack is installed in the namespace ${namespace}, and a cluster has one installation: ` +
    `set namespace to ${namespace}, or uninstall that one first`;

  it("is found by --check, which names the first one", async () => {
    expect(await problems(other.namespace)).toEqual([inUse(cluster.namespace)]);
    expect(await problems(cluster.namespace)).toEqual([]);
  });

  it("gets no rights and no CRD, applied by the same manager, and is told of the first one", async () => {
    const refused = await refusals(second, applied);

    expect([...refused.keys()]).toEqual(shared(/^(ClusterRole|ClusterRoleBinding|CustomResourceDefinition)$/));
    for (const message of refused.values()) {
      expect(message).toContain(`Kindstack is installed in the namespace ${cluster.namespace}, and a cluster has`);
    }
    // What of it was applied refuses the first one's next upgrade.
    expect(await problems(cluster.namespace)).toEqual([inUse(other.namespace)]);
  });

  it("is refused by its operator, whatever rights that has", async () => {
    await expect(refuseSecondInstallation(cluster.client, other.namespace)).rejects.toThrow(
      `Kindstack is installed in the namespace ${cluster.namespace}, and a cluster has one installation`,
    );
    await refuseSecondInstallation(cluster.client, cluster.namespace);
  });

  it("leaves all that the first one has when it is deleted", async () => {
    const refused = await refusals(second, remove);

    expect([...refused.keys()]).toEqual(shared(/^CustomResourceDefinition$/));
    const left = (await Promise.all(second.map(find))).filter((object) => object !== undefined);
    expect(left).toEqual(before.filter((object) => object && isDefinition(object)));
    expect(await Promise.all(first.map(find))).toEqual(before);
  });
});

describe("the first installation", () => {
  it("keeps its CRDs when they are applied without their label by the same manager", async () => {
    const unlabelled = installedDefinitions(KINDS).filter(isDefinition);
    const refused = await refusals(unlabelled, (manifest) => cluster.client.apply(manifest));

    expect([...refused.keys()]).toEqual(unlabelled.map(objectId));
    for (const message of refused.values()) {
      expect(message).toContain(`"kindstack crds --namespace ${cluster.namespace}"`);
    }
    const own = unlabelled.map((manifest) => installedIn(cluster.namespace, manifest));
    expect(await refusals(own, applied)).toEqual(new Map());
    const labels = (await Promise.all(own.map(find))).map((found) => found?.metadata.labels?.[INSTALLED_IN_LABEL]);
    expect(new Set(labels)).toEqual(new Set([cluster.namespace]));
  });

  it("is upgraded all the same", async () => {
    expect(await refusals(first, applied)).toEqual(new Map());
  });

  it("loses no CRD while its service account exists, but a kind whose CRD was released, as the message says", async () => {
    const definitions = first.filter(isDefinition);
    const [definition] = definitions as [Manifest];
    expect(definition.metadata.name).toBe(kindName(podSet));

    const refused = await refusals(definitions, remove);
    const command = `kubectl label --overwrite crd ${kindName(podSet)} kindstack.dev/installed-in=`;
    expect([...refused.values()][0]).toContain(command);
    expect(refused.size).toBe(definitions.length);

    await release(definition);
    await remove(definition);
    await eventually(async () => expect(await find(definition)).toBeUndefined());
    await applied(definition);
  });

  it("leaves the cluster to another one when it is uninstalled, with its CRDs or without", async () => {
    const account = first.find(({ kind, metadata }) => kind === "ServiceAccount" && metadata.name === "kindstack");
    await remove(account as Manifest);
    const definitions = second.filter(isDefinition);
    const rest = second.filter((manifest) => !isDefinition(manifest));
    await eventually(async () => expect(await refusals(rest, applied)).toEqual(new Map()));
    expect(await refusals(definitions, applied)).toEqual(new Map()); // left by the first one, as Helm leaves them

    for (const definition of definitions) {
      expect((await find(definition))?.metadata.labels?.[INSTALLED_IN_LABEL]).toBe(other.namespace);
    }
    await refuseSecondInstallation(cluster.client, other.namespace);
    for (const definition of definitions) await release(definition);
    await refuseSecondInstallation(cluster.client, cluster.namespace);
  });
});
