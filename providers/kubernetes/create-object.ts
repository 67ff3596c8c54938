import { isApiError, type KubernetesClient } from "./client";
import { outdatedObject } from "./object-observation";
import type { LiveObject, ManagedFieldsEntry, Manifest } from "./types";

/*
 * No apply can be told to create an object and to leave one that is there alone. So what may not be overwritten is created
 * first, and applied then: until its entry as the creator is removed, a manager has each field twice.
 */

/** Creates an object, if nothing has its name. @throws RetryableError `PlanOutdated` */
export async function createOnly(
  client: KubernetesClient,
  manifest: Manifest,
  fieldManager: string,
): Promise<LiveObject> {
  try {
    return await client.create(manifest, { fieldManager, fieldValidation: "Strict" });
  } catch (error) {
    throw isApiError(error, 409) && (error.reason as string) === "AlreadyExists" ? outdatedObject(manifest) : error;
  }
}

/** Removes fields that their managers own as creators: such fields would stay when the managers no longer apply them. */
export async function withoutCreators(
  client: KubernetesClient,
  live: LiveObject,
  managers: readonly string[],
): Promise<LiveObject> {
  const { name, namespace, uid, resourceVersion, managedFields = [] } = live.metadata;
  const isCreators = ({ manager = "", operation, subresource }: ManagedFieldsEntry) =>
    managers.includes(manager) && operation === "Update" && !subresource;
  if (!managedFields.some(isCreators)) return live;
  const rest = managedFields.filter((entry) => !isCreators(entry));
  return client.mergePatch(live, name, namespace, { metadata: { uid, resourceVersion, managedFields: rest } });
}
