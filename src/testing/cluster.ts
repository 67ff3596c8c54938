import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { type KubernetesClient, known, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { isReady } from "../../stacks/contract/readiness";
import { portableWords } from "../../stacks/kinds/catalog";
import { removeDevCluster, startDevCluster } from "../dev/cluster";
import { adminClient } from "../dev/control-plane";
import { layoutOf, logFileOf } from "../dev/layout";
import { operator } from "../dev/operator";
import { inDefaultNamespace } from "../dev/samples";
import { resolveEngine } from "../toolchain/engine";
import { eventually } from "./eventually";

/** Who applies manifests, as another than the operator. */
const AUTHOR = "kindstack-test";
const OTHER_MANAGER = "kindstack-test-drift";

/** What names an object: any manifest of it. */
type Reference = Pick<Manifest, "apiVersion" | "kind" | "metadata">;

/** For {@link startTestCluster}. */
export interface TestClusterOptions {
  /** What the operator serves, as for `--kinds`: `["./src"]`. */
  kinds: readonly string[];
}

/** A control plane, a database and an operator of some kinds, for the tests of one file. */
export interface TestCluster {
  /** For kubectl and other clients. */
  readonly kubeconfig: string;
  /** The variables that programs need to find the cluster, the database and the state. */
  readonly env: Readonly<Record<string, string>>;
  /** Acts as the cluster's administrator. */
  readonly client: KubernetesClient;
  /** Applies a manifest as its author does; in the namespace `default` where it names none. */
  apply(manifest: Manifest): Promise<LiveObject>;
  /** Applies fields with another field manager and by force, as a person who changes a resource by hand. */
  drift(manifest: Manifest): Promise<LiveObject>;
  find(reference: Reference): Promise<LiveObject | undefined>;
  remove(reference: Reference): Promise<void>;
  /** Waits until an object is Ready as it is now specified. @throws Error with its status after two minutes */
  untilReady(reference: Reference): Promise<LiveObject>;
  /** Waits until there is no such object. */
  untilGone(reference: Reference): Promise<void>;
  /** What the operator has logged. */
  log(): Promise<string>;
  /** Stops everything and deletes its data. */
  close(): Promise<void>;
}

/** See `startTestCluster` of `start-cluster.ts`. */
export async function openTestCluster({ kinds }: TestClusterOptions): Promise<TestCluster> {
  const engine = await resolveEngine({});
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), "kindstack-cluster-"));
  const cluster = await startDevCluster({ dir });
  const client = adminClient(cluster.kubeconfig);
  const log = () => fs.readFile(logFileOf(layoutOf(dir), "operator"), "utf8");
  const close = async () => {
    await client.close();
    await cluster.stop();
    await removeDevCluster(dir);
  };
  try {
    await cluster.start(await operator(cluster, engine, { kinds: portableWords(kinds) }));
  } catch (error) {
    const output = await log().catch(() => "");
    await close();
    throw new Error(`the operator did not start:\n${output}`, { cause: error });
  }
  return { kubeconfig: cluster.kubeconfig, env: cluster.env, client, log, close, ...actionsOf(client) };
}

function actionsOf(client: KubernetesClient) {
  const placed = <T extends Reference>(reference: T) => inDefaultNamespace(client, reference);
  const applyAs = async (manifest: Manifest, fieldManager: string) =>
    (await client.apply(await placed(manifest), { fieldManager })).object;
  const find = async (reference: Reference) => known(client.find(await placed(reference)));
  return {
    apply: (manifest: Manifest) => applyAs(manifest, AUTHOR),
    drift: (manifest: Manifest) => applyAs(manifest, OTHER_MANAGER),
    find,
    remove: async (reference: Reference) => {
      const { name, namespace } = (await placed(reference)).metadata;
      await client.delete(reference, name ?? "", namespace);
    },
    untilReady: (reference: Reference) =>
      eventually(async () => {
        const object = await find(reference);
        if (object === undefined || !isReady(object)) {
          throw new Error(
            `${reference.kind} ${reference.metadata.name} is not Ready: ${JSON.stringify(object?.status)}`,
          );
        }
        return object;
      }),
    untilGone: (reference: Reference) =>
      eventually(async () => {
        if (await find(reference)) throw new Error(`${reference.kind} ${reference.metadata.name} is still there`);
      }),
  };
}
