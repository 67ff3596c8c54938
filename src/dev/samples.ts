import fs from "node:fs/promises";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseAllDocuments } from "yaml";
import type { KubernetesClient, LiveObject, Manifest } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { sampleOf } from "../../stacks/catalog";
import { findCondition } from "../../stacks/contract/condition";
import { type AnyKind, statusOf } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import { isReady } from "../../stacks/contract/readiness";
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
  const applied: LiveObject[] = [];
  for (const manifest of manifests) {
    const { namespaced } = await client.resourceType(manifest.apiVersion, manifest.kind);
    if (namespaced) manifest.metadata.namespace ??= "default";
    applied.push((await client.apply(manifest, { fieldManager: FIELD_MANAGER })).object);
  }
  const deadline = Date.now() + READY_TIMEOUT_MS;
  return Promise.all(applied.map((object) => untilReady(client, object, deadline, signal)));
}

/** The namespaces that were made or adopted for an object, with who may do what in them. */
export async function ownedNamespaces(client: KubernetesClient) {
  const { items } = await client.list({ apiVersion: "v1", kind: "Namespace" }, { labelSelector: OWNER_UID_LABEL });
  const bindingType = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding" };
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
  applied: LiveObject,
  deadline: number,
  signal: AbortSignal,
): Promise<SampleOutcome> {
  const outcome = { kind: applied.kind, name: objectKey(applied.metadata) };
  for (;;) {
    const object = await client.find(applied);
    if (object === undefined) return { ...outcome, ready: false, message: "it was deleted" };
    const { message = "the operator has not reported on it" } =
      findCondition(statusOf(object).conditions, "Ready") ?? {};
    const ready = isReady(object);
    if (ready || Date.now() > deadline) return { ...outcome, ready, message };
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
