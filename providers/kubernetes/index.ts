/* `kindstack/providers/kubernetes`: Kubernetes objects as resources, and what programs need to know of them. */

export { reviewAccess, type UserInfo } from "./access-review";
export { ApiError, isApiError } from "./api-server";
export { allowedGroups, refuseBroadGroup } from "./broad-groups";
export type { ManifestOf } from "./known-types";
export { failureIn, type Health, healthOf } from "./kstatus";
export { KubernetesObject } from "./object";
export type { ObjectInputs } from "./object-inputs";
export { OWNER_UID_LABEL, type Owner, wasCreated } from "./ownership";
export {
  isProtectedNamespace,
  protectedNamespaces,
  refuseProtectedNamespace,
} from "./protected-namespaces";
export { formatQuantity, parseQuantity } from "./quantity";
export { termination } from "./termination";
export type { LiveObject, Manifest, ObjectMeta, ObjectType, OwnerReference } from "./types";
export { known, type Lookup } from "./types";
