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
 * The plan of one object, in the object's namespace. Plans of cluster-scoped objects, and of objects whose namespace is
 * being deleted, are in the operator's namespace.
 *
 * @throws ApiError when the plan cannot be read; Error when the object has no plan
 */
export async function findPlan(
  client: Reader,
  kind: AnyKind,
  { name, namespace }: { name: string; namespace: string },
): Promise<Plan> {
  const isCluster = kind.scope === "Cluster";
  const isOf = ({ spec: { object } }: Plan) =>
    kindOf([kind], object) !== undefined && object.name === name && (isCluster || object.namespace === namespace);
  const own = isCluster ? [] : await readPlans(client, namespace);
  const all = () =>
    readPlans(client).catch((error) => {
      if (!isCluster && isApiError(error, 403)) return [];
      throw error;
    });
  const plan = own.find(isOf) ?? (await all()).find(isOf);
  if (plan !== undefined) return plan;
  const title = `${kind.kind} ${isCluster ? name : `${namespace}/${name}`}`;
  throw new Error(`${title} has no plan: nothing of it waits for an approval`);
}
