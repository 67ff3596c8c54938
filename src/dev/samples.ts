import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type KubernetesClient, known, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { findCondition } from "../../stacks/contract/condition";
import { type AnyKind, statusOf } from "../../stacks/contract/kind";
import { requireManifests } from "../../stacks/contract/manifests";
import { objectKey } from "../../stacks/contract/object";
import type { ManifestDocument } from "../../stacks/contract/parse-manifests";
import { isReady } from "../../stacks/contract/readiness";
import { sampleOf } from "../../stacks/kinds/catalog";
import { kinds as builtIn } from "../../stacks/kinds/index";
import { packageRoot } from "../package";
import { renderTable } from "../text/table";
import type { DevCluster } from "./cluster";
import { adminClient, FIELD_MANAGER } from "./control-plane";
import { withClient } from "./postgres";

/** Ends what hangs: on a slow machine, images of controllers and nodes take minutes as well. */
const READY_TIMEOUT_MS = 5 * 60_000;
const POLL_MS = 250;

/** A sample, and what its condition Ready says. */
export interface SampleState {
  kind: string;
  name: string;
  ready: boolean;
  message: string;
}

/** Whether what a kind makes is completed by controllers and nodes: its Pods run nowhere without. */
export function needsControllers({ owns }: Pick<AnyKind, "owns">): boolean {
  return owns.some(
    ({ apiVersion, kind }) => /^(apps|batch)\//.test(apiVersion) || (apiVersion === "v1" && kind === "Pod"),
  );
}

export async function applySamples({ kubeconfig }: DevCluster, kinds: readonly AnyKind[]): Promise<LiveObject[]> {
  await using client = adminClient(kubeconfig);
  const applied: LiveObject[] = [];
  for (const { manifest } of await requireManifests([...new Set(kinds.flatMap(sampleFiles))])) {
    const placed = await inDefaultNamespace(client, manifest as ManifestDocument & Manifest);
    applied.push((await client.apply(placed, { fieldManager: FIELD_MANAGER })).object);
  }
  return applied;
}

/** Waits, for some minutes at most, until samples are Ready, and tells of each as soon as it is. */
export async function untilSamplesReady(
  { kubeconfig }: DevCluster,
  applied: readonly LiveObject[],
  tell: (state: SampleState) => void,
  signal: AbortSignal,
): Promise<SampleState[]> {
  await using client = adminClient(kubeconfig);
  const deadline = Date.now() + READY_TIMEOUT_MS;
  return await Promise.all(
    applied.map(async (object) => {
      const state = await untilReady(client, object, deadline, signal);
      if (state.ready) tell(state);
      return state;
    }),
  );
}

/** Tables of samples, of the namespaces that are made for them and of their rows. */
export async function describeSamples(
  { kubeconfig, postgres }: DevCluster,
  samples: readonly SampleState[],
): Promise<string[]> {
  await using client = adminClient(kubeconfig);
  const namespaces = await ownedNamespaces(client);
  const { rows } = await withClient(postgres, (sql) =>
    sql.query<string[]>({ text: "select id, name, age, country from students order by id", rowMode: "array" }),
  );
  const lines = samples.map(({ kind, name, ready, message }) => [kind, name, ready ? "True" : "False", message]);
  return [
    renderTable(["kind", "name", "ready", "message"], lines),
    ...(namespaces.length > 0 ? [renderTable(["namespace", "role bindings"], namespaces)] : []),
    ...(rows.length > 0 ? [renderTable(["row of students", "name", "age", "country"], rows)] : []),
  ];
}

/** An object as kubectl applies it: in the namespace `default` if its type is namespaced and it names none. */
export async function inDefaultNamespace<T extends Pick<Manifest, "apiVersion" | "kind" | "metadata">>(
  client: KubernetesClient,
  object: T,
): Promise<T> {
  const { namespaced } = await client.resourceType(object.apiVersion, object.kind);
  return namespaced ? { ...object, metadata: { namespace: "default", ...object.metadata } } : object;
}

function sampleFiles(kind: AnyKind): string[] {
  // Compiled, the built-in kinds lie elsewhere, under the same name.
  const own = path.join(packageRoot, "stacks/kinds", path.basename(kind.directory), "sample.yaml");
  return [builtIn.includes(kind) ? own : sampleOf(kind)].filter((file) => file !== undefined);
}

async function untilReady(
  client: KubernetesClient,
  applied: LiveObject,
  deadline: number,
  signal: AbortSignal,
): Promise<SampleState> {
  const { kind } = applied;
  const name = objectKey(applied.metadata);
  for (;;) {
    const object = await known(client.find(applied));
    if (object === undefined) return { kind, name, ready: false, message: "it was deleted" };
    const ready = isReady(object);
    if (ready || Date.now() > deadline) {
      const condition = findCondition(statusOf(object).conditions, "Ready");
      return { kind, name, ready, message: condition?.message ?? "the operator has not reported on it" };
    }
    await delay(POLL_MS, undefined, { signal });
  }
}

/** The namespaces that were made or adopted for an object, and who may do what in each. */
async function ownedNamespaces(client: KubernetesClient): Promise<string[][]> {
  const { items } = await client.list({ apiVersion: "v1", kind: "Namespace" }, { labelSelector: OWNER_UID_LABEL });
  const bindingType = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding" };
  return Promise.all(
    items.map(async ({ metadata: { name } }) => {
      const bindings = await client.list(bindingType, { namespace: name });
      return [name, bindings.items.map(describeBinding).join("; ")];
    }),
  );
}

function describeBinding(binding: LiveObject): string {
  const { roleRef, subjects = [] } = binding as unknown as {
    roleRef: { name: string };
    subjects?: { name: string }[];
  };
  return `${binding.metadata.name}: ${roleRef.name} for ${subjects.map(({ name }) => name).join(", ") || "nobody"}`;
}
