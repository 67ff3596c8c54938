import { isApiError, type KubernetesClient } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import { kindOf } from "../../stacks/contract/kind-name";
import { PLAN_TYPE, type Plan } from "../../stacks/contract/plan";

type Reader = Pick<KubernetesClient, "list">;

/** The plans of a namespace, or of all; those that wait the longest first. @throws ApiError when they cannot be read */
export async function readPlans(client: Reader, namespace?: string): Promise<Plan[]> {
  const { items } = await client.list(PLAN_TYPE, { namespace });
  return (items as Plan[]).sort((a, b) => a.spec.cause.at.localeCompare(b.spec.cause.at));
}

/**
 * The plan of one object: in its namespace or, for what has none or is in one that ends, in the operator's.
 *
 * @throws ApiError when it cannot be read
 */
export async function findPlan(
  client: Reader,
  kind: AnyKind,
  object: { name: string; namespace: string },
): Promise<Plan | undefined> {
  const isOf = ({ spec: { object: planned } }: Plan) =>
    kindOf([kind], planned) !== undefined &&
    planned.name === object.name &&
    (kind.scope === "Cluster" || planned.namespace === object.namespace);
  if (kind.scope === "Cluster") return (await readPlans(client)).find(isOf);
  const own = (await readPlans(client, object.namespace)).find(isOf);
  return own ?? (await readPlans(client).catch(noneWhereForbidden)).find(isOf);
}

function noneWhereForbidden(error: unknown): Plan[] {
  if (isApiError(error, 403)) return [];
  throw error;
}
