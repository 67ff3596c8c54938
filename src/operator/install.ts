import { setTimeout as delay } from "node:timers/promises";
import { RetryableError, TerminalError } from "../../providers/errors";
import {
  type ApiError,
  isApiError,
  type KubernetesClient,
  known,
  type ObjectType,
} from "../../providers/kubernetes/client";
import { APPROVAL_TYPE } from "../../stacks/contract/approval";
import { customResourceDefinition, DEFINITION_TYPE, findForeignDefinitions } from "../../stacks/contract/crd";
import { INSTALLED_IN_LABEL, ONE_INSTALLATION } from "../../stacks/contract/installation";
import { type InstalledRules, installedPolicies } from "../../stacks/contract/installed-definitions";
import { type AnyKind, kindName, kindType } from "../../stacks/contract/kind";
import { PLAN_TYPE } from "../../stacks/contract/plan";
import { MUTATION_TYPE } from "../../stacks/contract/validating-policy";
import { unservedTypes } from "../cache/informer-factory";

const SERVED_TIMEOUT_MS = 30_000;

/**
 * Applies the CRDs of kinds, of plans and approvals, with their policies, and waits until the API server serves them.
 *
 * @param report told of each kind whose CRD the API server refuses; without it, the first one is thrown
 * @returns the other kinds
 * @throws TerminalError `ForeignDefinition`, before anything is applied, when one of them is another operator's
 * @throws ApiError when the API server refuses the CRDs of all kinds
 */
export async function installKinds(
  client: Pick<KubernetesClient, "get" | "apply" | "resourceType">,
  kinds: readonly AnyKind[],
  report?: (kind: string, reason: string) => void,
  rules: InstalledRules = {},
): Promise<readonly AnyKind[]> {
  await refuseForeignDefinitions(client, kinds);
  const refusals = new Map<AnyKind, ApiError>();
  await Promise.all(
    kinds.map(async (kind) => {
      try {
        await client.apply(customResourceDefinition(kind));
      } catch (error) {
        if (report === undefined || !isApiError(error, 400, 422)) throw error;
        refusals.set(kind, error);
      }
    }),
  );
  const served = kinds.filter((kind) => !refusals.has(kind));
  for (const [kind, error] of refusals) {
    if (served.length === 0) throw error;
    report?.(kindName(kind), error.message);
  }
  for (const manifest of installedPolicies(served, rules)) await client.apply(manifest);
  for (const type of [...served.map(kindType), PLAN_TYPE, APPROVAL_TYPE]) await untilServed(client, type);
  return served;
}

/**
 * Checks that the CRDs of kinds, as far as they exist, were installed by Kindstack: two operators of one kind would each
 * undo the other's work, and neither understands the other's objects.
 */
export async function refuseForeignDefinitions(
  client: Pick<KubernetesClient, "get">,
  kinds: readonly AnyKind[],
): Promise<readonly AnyKind[]> {
  const foreign = await findForeignDefinitions(client, kinds);
  if (foreign.length === 0) return kinds;
  const others = kinds.filter((kind) => !foreign.includes(kind)).map(kindName);
  throw new TerminalError(
    "ForeignDefinition",
    `the cluster has CRDs of these names that Kindstack did not install: ${foreign.map(kindName).join(", ")}. ` +
      (others.length > 0
        ? `Leave these kinds to their operator and choose the others: --kinds ${others.join(",")}`
        : "Install Kindstack into another cluster: without those CRDs, this one would lose all objects of these kinds"),
  );
}

/**
 * Checks that no other installation has the cluster: two operators of one kind would each undo the other's work. One whose
 * namespace is gone has left its CRDs.
 */
export async function refuseSecondInstallation(
  client: Pick<KubernetesClient, "get">,
  namespace: string,
): Promise<void> {
  const definition = await known(client.get(DEFINITION_TYPE, PLANS));
  const other = definition?.metadata.labels?.[INSTALLED_IN_LABEL];
  if (other === undefined || other === "" || other === namespace) return; // an empty one was released
  if ((await known(client.get({ apiVersion: "v1", kind: "Namespace" }, other))) === undefined) return;
  throw new TerminalError(
    "ForeignDefinition",
    `Kindstack is installed in the namespace ${other}, ${ONE_INSTALLATION}; this operator's namespace is ${namespace}. ` +
      `Use that one, or uninstall it. If it is gone and the namespace is not: kubectl label crd -l ${INSTALLED_IN_LABEL}=${other} ${INSTALLED_IN_LABEL}-`,
  );
}

const PLANS = "plans.kindstack.dev";

/** Checks that the API server can record who changes an object. */
export async function requireAuthorPolicies(client: Pick<KubernetesClient, "resourceType">): Promise<void> {
  if ((await unservedTypes(client, [MUTATION_TYPE])).length === 0) return;
  const type = `${MUTATION_TYPE.kind} in ${MUTATION_TYPE.apiVersion}`;
  const message = `--author-may-not-approve: the API server does not serve ${type} (Kubernetes 1.36)`;
  throw new TerminalError("NotServed", message);
}

/** A CRD becomes established a moment before discovery has its kind; until then its objects are `404`. */
async function untilServed(client: Pick<KubernetesClient, "resourceType">, type: ObjectType): Promise<void> {
  const deadline = performance.now() + SERVED_TIMEOUT_MS;
  while (performance.now() < deadline) {
    if ((await unservedTypes(client, [type])).length === 0) return;
    await delay(50);
  }
  throw new RetryableError(
    "NotServed",
    `the API server does not serve ${type.kind} in ${type.apiVersion} ${SERVED_TIMEOUT_MS / 1000} s after its CRD was applied`,
  );
}
