import fs from "node:fs/promises";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseAllDocuments } from "yaml";
import type { KubernetesClient, LiveObject, Manifest, ResourceType } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { sampleOf } from "../../stacks/catalog";
import { type AnyKind, statusOf } from "../../stacks/contract/kind";
import { kinds as builtIn } from "../../stacks/index";
import { packageRoot } from "../package";
import { type PostgresSettings, withClient } from "./postgres";

const FIELD_MANAGER = "kindstack-dev";
const READY_TIMEOUT_MS = 60_000;
const POLL_MS = 250;

/** What became of a sample. */
export interface SampleOutcome {
  kind: string;
  /** `namespace/name`, or the name alone. */
  name: string;
  ready: boolean;
  /** The message of its condition Ready. */
  message: string;
}

/** Applies the samples of all kinds and waits, for a minute at most, until each is Ready. */
export async function applySamples(
  client: KubernetesClient,
  kinds: readonly AnyKind[],
  signal: AbortSignal,
): Promise<SampleOutcome[]> {
  const manifests = (await Promise.all(kinds.map(readSample))).flat();
  const applied: { type: ResourceType; object: LiveObject }[] = [];
  for (const manifest of manifests) {
    const type = await client.resourceType(manifest.apiVersion, manifest.kind);
    if (type.namespaced) manifest.metadata.namespace ??= "default";
    const { object } = await client.apply(type, manifest, { fieldManager: FIELD_MANAGER });
    applied.push({ type, object });
  }
  const deadline = Date.now() + READY_TIMEOUT_MS;
  return Promise.all(applied.map(({ type, object }) => untilReady(client, type, object, deadline, signal)));
}

/** The namespaces that were made or adopted for an object, with who may do what in them. */
export async function ownedNamespaces(client: KubernetesClient) {
  const namespaceType = await client.resourceType("v1", "Namespace");
  const bindingType = await client.resourceType("rbac.authorization.k8s.io/v1", "RoleBinding");
  const { items } = await client.list(namespaceType, { labelSelector: OWNER_UID_LABEL });
  return Promise.all(
    items.map(async ({ metadata: { name } }) => {
      const bindings = await client.list(bindingType, { namespace: name });
      return { name, roleBindings: bindings.items.map(describeBinding) };
    }),
  );
}

export interface Student {
  id: string;
  name: string;
  age: number;
  country: string;
}

export function students(settings: PostgresSettings): Promise<Student[]> {
  return withClient(settings, async (client) => {
    const { rows } = await client.query<Student>("select id, name, age, country from students order by id");
    return rows;
  });
}

async function readSample(kind: AnyKind): Promise<Manifest[]> {
  // Compiled, the built-in kinds lie elsewhere, under the same name.
  const own = path.join(packageRoot, "stacks", path.basename(kind.directory), "sample.yaml");
  const file = builtIn.includes(kind) ? own : sampleOf(kind);
  if (file === undefined) return [];
  return parseAllDocuments(await fs.readFile(file, "utf8")).map((document) => document.toJS() as Manifest);
}

async function untilReady(
  client: KubernetesClient,
  type: ResourceType,
  applied: LiveObject,
  deadline: number,
  signal: AbortSignal,
): Promise<SampleOutcome> {
  const { name, namespace } = applied.metadata;
  const outcome = { kind: type.kind, name: namespace === undefined ? name : `${namespace}/${name}` };
  for (;;) {
    const object = await client.get(type, name, namespace);
    if (object === undefined) return { ...outcome, ready: false, message: "it was deleted" };
    const condition = statusOf(object).conditions?.find(({ type }) => type === "Ready");
    const current = condition?.observedGeneration === object.metadata.generation;
    if (condition?.status === "True" && current) return { ...outcome, ready: true, message: condition.message };
    if (Date.now() > deadline) {
      return { ...outcome, ready: false, message: condition?.message ?? "the operator has not reported on it" };
    }
    await delay(POLL_MS, undefined, { signal });
  }
}

function describeBinding(binding: LiveObject): string {
  const { roleRef, subjects = [] } = binding as unknown as {
    roleRef: { name: string };
    subjects?: { name: string }[];
  };
  return `${binding.metadata.name}: ${roleRef.name} for ${subjects.map(({ name }) => name).join(", ") || "nobody"}`;
}
