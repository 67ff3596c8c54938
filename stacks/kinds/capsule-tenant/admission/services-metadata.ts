import type { AdmissionWebhook } from "../../../contract/index";
import { SERVICES_METADATA_LABEL } from "../labels";
import { addToMap } from "./patch";
import { tenantOf } from "./tenants";

/**
 * Puts the tenant's `servicesMetadata` on Services, Endpoints and EndpointSlices whenever they are created or changed.
 * While no operator answers they are stored without; only namespaces of tenants with such metadata are concerned.
 *
 * A MutatingAdmissionPolicy could do it without a request, but answers 503 for a while after each start of an API server.
 */
export function servicesMetadataWebhook(): AdmissionWebhook {
  const operations = ["CREATE", "UPDATE"] as const;
  const scope = "Namespaced";
  return {
    name: "services.capsule.clastix.io",
    type: "mutating",
    rules: [
      { apiGroups: [""], apiVersions: ["v1"], operations, resources: ["services", "endpoints"], scope },
      { apiGroups: ["discovery.k8s.io"], apiVersions: ["v1"], operations, resources: ["endpointslices"], scope },
    ],
    failurePolicy: "Ignore",
    namespaceSelector: { matchExpressions: [{ key: SERVICES_METADATA_LABEL, operator: "Exists" }] },
    timeoutSeconds: 5,
    sideEffects: "None",
    review: ({ object, namespace }, view) => {
      const { additionalLabels = {}, additionalAnnotations = {} } =
        tenantOf(namespace, view)?.spec.servicesMetadata ?? {};
      const { labels, annotations } = object?.metadata ?? {};
      return {
        allowed: true,
        patch: [
          ...addToMap("/metadata/labels", labels, additionalLabels),
          ...addToMap("/metadata/annotations", annotations, additionalAnnotations),
        ],
      };
    },
  };
}
