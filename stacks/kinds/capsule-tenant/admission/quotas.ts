import type { AdmissionWebhook } from "../../../contract/index";
import { QUOTAS_LABEL } from "../labels";
import type { QuotaRoom } from "./quota-room";
import { ADMINISTERS_TENANTS } from "./user-groups";

const WORKLOADS = ["pods", "services", "persistentvolumeclaims"];
/** What running Pods cause: many requests, which quotas do not count, or hardly ever do. */
const MADE_BY_WHAT_RUNS = ["events", "leases", "endpoints", "endpointslices", "localsubjectaccessreviews"];
/** What Kindstack makes in a tenant's namespaces: the update that makes it must not wait for a balance that follows it. */
const MANAGED = ["limitranges", "networkpolicies", "resourcequotas", "rolebindings"];

/** Names of resources in quotas that Pods, Services and claims are counted by. */
const COUNTED_BY_WORKLOADS =
  /^(count\/)?(pods|services|persistentvolumeclaims)$|^services\.|^(cpu|memory|ephemeral-storage)$|^(requests|limits)\.|^hugepages-|\.storageclass\.storage\.k8s\.io\//;

/** The value of {@link QUOTAS_LABEL}: which requests the API server sends to the webhooks. */
export function quotasLabel(resourceQuotas: readonly { hard?: object }[]): "objects" | "workloads" {
  const counted = resourceQuotas.flatMap(({ hard = {} }) => Object.keys(hard));
  return counted.every((resource) => COUNTED_BY_WORKLOADS.test(resource)) ? "workloads" : "objects";
}

/**
 * Make room in a namespace's ResourceQuota for a request that the tenant has enough left for ({@link QuotaRoom}). The API
 * server counts quotas after all webhooks, so that these decide nothing: they allow everything, sooner or later.
 *
 * One is asked about Pods, Services and claims; another about all else, only where a tenant's quota counts such objects.
 */
export function quotaWebhooks(room: QuotaRoom): AdmissionWebhook[] {
  const scope = "Namespaced";
  const core = { apiGroups: [""], apiVersions: ["v1"], scope } as const;
  const common = {
    type: "validating",
    failurePolicy: "Ignore",
    timeoutSeconds: 5,
    sideEffects: "NoneOnDryRun",
    review: async (request, view) => {
      // What cannot be looked at is for the API server to judge.
      await room.make(request, view).catch(() => {});
      return { allowed: true };
    },
  } satisfies Partial<AdmissionWebhook>;
  return [
    {
      ...common,
      name: "quotas.capsule.clastix.io",
      rules: [
        { ...core, operations: ["CREATE"], resources: WORKLOADS },
        { ...core, operations: ["UPDATE"], resources: ["services", "persistentvolumeclaims", "pods/resize"] },
      ],
      namespaceSelector: { matchExpressions: [{ key: QUOTAS_LABEL, operator: "Exists" }] },
      matchConditions: [
        { name: "changes-its-specification", expression: "oldObject == null || object.spec != oldObject.spec" },
      ],
    },
    {
      ...common,
      name: "objects.quotas.capsule.clastix.io",
      rules: [{ apiGroups: ["*"], apiVersions: ["*"], operations: ["CREATE"], resources: ["*"], scope }],
      namespaceSelector: { matchExpressions: [{ key: QUOTAS_LABEL, operator: "In", values: ["objects"] }] },
      matchConditions: [
        {
          name: "is-no-workload",
          expression: `request.resource.group != "" || !(request.resource.resource in ${JSON.stringify(WORKLOADS)})`,
        },
        { name: "may-be-counted", expression: `!(request.resource.resource in ${JSON.stringify(MADE_BY_WHAT_RUNS)})` },
        {
          name: "is-not-made-by-kindstack",
          expression: `!(request.resource.resource in ${JSON.stringify(MANAGED)}) || !${ADMINISTERS_TENANTS}`,
        },
      ],
    },
  ];
}
