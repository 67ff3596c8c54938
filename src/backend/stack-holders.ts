import { RetryableError } from "../../providers/errors";
import { isApiError, type KubernetesClient } from "../../providers/kubernetes/client";
import { DEFINITION_TYPE } from "../../stacks/contract/crd";
import { type AnyKind, kindName, kindType, statusOf } from "../../stacks/contract/kind";
import { objectKey, stackName } from "../../stacks/contract/object";

export interface StackHolder {
  /** The name of its stack, whether that exists or not. */
  stack: string;
  uid: string;
  /** Whether its status names that stack. */
  isRecorded: boolean;
}

/** All objects of kinds, as the API server has them. @throws ApiError, RetryableError `NotServed` where it cannot show all */
export async function listHolders(
  client: Pick<KubernetesClient, "get" | "pages">,
  kinds: readonly AnyKind[],
): Promise<StackHolder[]> {
  const holders: StackHolder[] = [];
  for (const kind of kinds) {
    try {
      for await (const { items } of client.pages(kindType(kind))) {
        for (const object of items) {
          const stack = stackName(kind, objectKey(object.metadata));
          holders.push({ stack, uid: object.metadata.uid, isRecorded: statusOf(object).stack?.name === stack });
        }
      }
    } catch (error) {
      if (!isApiError(error, 404)) throw error;
      // A type that is not served may have objects all the same.
      const { outcome } = await client.get(DEFINITION_TYPE, kindName(kind));
      if (outcome !== "absent") throw new RetryableError("NotServed", `${kindName(kind)} is installed and not served`);
    }
  }
  return holders;
}
