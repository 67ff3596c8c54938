import { isUnknownKind, type KubernetesClient, known, type Manifest } from "../../providers/kubernetes/client";
import { findFieldDrift } from "../../providers/kubernetes/field-differences";
import type { AnyKind } from "../contract/kind";
import type { Configuration } from "./configuration";
import { NAME } from "./labels";
import { isModePolicy, platformManifests } from "./manifests";
import { inOrderWhereUnseen } from "./prerequisites";

type Reader = Pick<KubernetesClient, "get" | "list">;

/**
 * The admission policies and bindings that were deleted or changed since they were installed, each with a remedy: nothing
 * restores them. Empty where the operator is not installed as it is configured, which has other policies.
 */
export async function lostPolicies(
  configuration: Configuration,
  kinds: readonly AnyKind[],
  client: Reader,
): Promise<string[]> {
  const manifests = await platformManifests(configuration, kinds);
  const operator = manifests.find(({ kind, metadata }) => kind === "Deployment" && metadata.name === NAME);
  if (operator === undefined || !(await isInstalled(operator, client).catch(inOrderWhereUnseen))) return [];
  const byKind = [...Map.groupBy(manifests.filter(isModePolicy), ({ kind }) => kind).values()];
  const lost = await Promise.all(byKind.map((policies) => lostAmong(policies, client).catch(inOrderWhereUnseen)));
  return lost.flatMap((problems) => problems ?? []);
}

/** Whether the operator is of this version and of this configuration, as far as its image and arguments tell. */
async function isInstalled(operator: Manifest, client: Reader): Promise<boolean> {
  const { name = "", namespace } = operator.metadata;
  const live = await known(client.get(operator, name, namespace));
  return live !== undefined && startOf(live) === startOf(operator);
}

function startOf({ spec }: Manifest): string {
  const { template } = spec as { template: { spec: { containers: { image: string; args: string[] }[] } } };
  return JSON.stringify(template.spec.containers.map(({ image, args }) => [image, args]));
}

/** @param policies of one kind */
async function lostAmong(policies: readonly Manifest[], client: Reader): Promise<string[]> {
  const [type] = policies as [Manifest];
  const listed = await client.list(type).catch((error) => {
    if (!isUnknownKind(error)) throw error; // what is not served is told of otherwise
  });
  if (listed === undefined) return [];
  const live = new Map(listed.items.map((item) => [item.metadata.name, item]));
  return policies.flatMap((policy) => {
    const { kind, metadata } = policy;
    const found = live.get(metadata.name ?? "");
    if (found === undefined) return [`${kind} ${metadata.name} does not exist; apply the installation again`];
    const fields = changedFields(policy, found);
    if (fields.length === 0) return [];
    return [`${kind} ${metadata.name} was changed (${fields.join(", ")}); delete it, and apply the installation again`];
  });
}

/** What was added narrows a policy as well. */
function changedFields(policy: Manifest, live: Manifest): string[] {
  const [wanted, found] = [withoutMetadata(policy), withoutMetadata(live)];
  const drift = [...findFieldDrift(wanted, found), ...findFieldDrift(found, wanted)];
  return [...new Set(drift.map(({ field }) => field.split(".", 2).join(".")))];
}

function withoutMetadata({ apiVersion, kind, spec }: Manifest): Manifest {
  return { apiVersion, kind, metadata: {}, spec };
}
