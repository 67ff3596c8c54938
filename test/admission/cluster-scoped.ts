import type { KubernetesClient, Manifest } from "../../providers/kubernetes/client";
import { roleFor, userNamed } from "../rights";

const name = "cordon-test";
const metadata = { name };
const manifest = (apiVersion: string, kind: string, fields: object = {}): Manifest => ({
  apiVersion,
  kind,
  metadata,
  ...fields,
});

const RBAC = "rbac.authorization.k8s.io";
const ADMISSION = "admissionregistration.k8s.io/v1";
const constraints = {
  resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["x"] }],
};

const ALL: Manifest[] = [
  manifest("v1", "Node"),
  manifest("v1", "PersistentVolume", {
    spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/none" } },
  }),
  manifest("storage.k8s.io/v1", "StorageClass", { provisioner: "example.com/none" }),
  manifest("storage.k8s.io/v1", "CSIDriver", { metadata: { name: "csi.example.com" }, spec: {} }),
  manifest("storage.k8s.io/v1", "CSINode", { spec: { drivers: [] } }),
  manifest("storage.k8s.io/v1", "VolumeAttachment", {
    spec: { attacher: "csi.example.com", nodeName: name, source: { persistentVolumeName: name } },
  }),
  manifest("storage.k8s.io/v1", "VolumeAttributesClass", { driverName: "csi.example.com", parameters: { a: "b" } }),
  manifest("scheduling.k8s.io/v1", "PriorityClass", { value: 1 }),
  manifest("node.k8s.io/v1", "RuntimeClass", { handler: "none" }),
  manifest("networking.k8s.io/v1", "IngressClass", { spec: { controller: "example.com/none" } }),
  manifest("networking.k8s.io/v1", "IPAddress", {
    metadata: { name: "192.0.2.1" },
    spec: { parentRef: { resource: "services", name: "none", namespace: "default" } },
  }),
  manifest("networking.k8s.io/v1", "ServiceCIDR", { spec: { cidrs: ["192.0.2.0/24"] } }),
  manifest(`${RBAC}/v1`, "ClusterRole", { rules: [] }),
  manifest(`${RBAC}/v1`, "ClusterRoleBinding", {
    roleRef: { apiGroup: RBAC, kind: "ClusterRole", name },
    subjects: [],
  }),
  manifest("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", {
    spec: { priorityLevelConfiguration: { name: "global-default" }, matchingPrecedence: 9_999 },
  }),
  manifest("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", {
    spec: { type: "Limited", limited: { nominalConcurrencyShares: 0, limitResponse: { type: "Reject" } } },
  }),
  manifest(ADMISSION, "ValidatingWebhookConfiguration", { webhooks: [] }),
  manifest(ADMISSION, "MutatingWebhookConfiguration", { webhooks: [] }),
  manifest(ADMISSION, "ValidatingAdmissionPolicy", {
    spec: { matchConstraints: constraints, validations: [{ expression: "true" }] },
  }),
  manifest(ADMISSION, "ValidatingAdmissionPolicyBinding", { spec: { policyName: name, validationActions: ["Deny"] } }),
  manifest(ADMISSION, "MutatingAdmissionPolicy", {
    spec: {
      matchConstraints: constraints,
      reinvocationPolicy: "Never",
      mutations: [
        {
          patchType: "JSONPatch",
          jsonPatch: { expression: "[JSONPatch{op: 'remove', path: '/metadata/annotations/a'}]" },
        },
      ],
    },
  }),
  manifest(ADMISSION, "MutatingAdmissionPolicyBinding", { spec: { policyName: name } }),
  manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", {
    metadata: { name: "nones.example.com" },
    spec: {
      group: "example.com",
      scope: "Cluster",
      names: { kind: "None", plural: "nones", singular: "none" },
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
    },
  }),
  manifest("apiregistration.k8s.io/v1", "APIService", {
    metadata: { name: "v1.none.example.com" },
    spec: {
      group: "none.example.com",
      version: "v1",
      groupPriorityMinimum: 1,
      versionPriority: 1,
      service: { name, namespace: "default" },
    },
  }),
  manifest("resource.k8s.io/v1", "DeviceClass", { spec: {} }),
  manifest("resource.k8s.io/v1", "ResourceSlice", {
    spec: {
      driver: "none.example.com",
      nodeName: name,
      pool: { name, generation: 1, resourceSliceCount: 1 },
      devices: [],
    },
  }),
];

/** Namespaces have tests of their own, and requests of certificates need a key. */
const ELSEWHERE = ["Namespace", "CertificateSigningRequest"];

interface Group {
  name: string;
  preferredVersion: { groupVersion: string };
}
interface Resource {
  name: string;
  kind: string;
  namespaced: boolean;
  verbs: string[];
}

/** Kubernetes' own cluster-scoped kinds that this API server serves: those that it stores, and those that it answers. */
export async function servedKinds(client: KubernetesClient): Promise<{ stored: string[]; answered: string[] }> {
  const { groups } = await client.json<{ groups: Group[] }>("GET", "/apis");
  const own = groups.filter(({ name }) => !name.includes(".") || name.endsWith(".k8s.io"));
  const paths = ["/api/v1", ...own.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`)];
  const lists = await Promise.all(paths.map((path) => client.json<{ resources: Resource[] }>("GET", path)));
  const found = lists
    .flatMap(({ resources }) => resources)
    .filter(({ name, namespaced, verbs }) => !namespaced && !name.includes("/") && verbs.includes("create"))
    .filter(({ kind }) => !ELSEWHERE.includes(kind));
  const [stored, answered] = [true, false].map((isStored) =>
    found.filter(({ verbs }) => verbs.includes("list") === isStored).map(({ kind }) => kind),
  );
  return { stored: stored as string[], answered: answered as string[] };
}

/** Every right in all groups except for Capsule's, as a controller of the platform may have it. */
export async function rightsExceptOnTenants(client: KubernetesClient, user: string): Promise<Manifest[]> {
  const { groups } = await client.json<{ groups: Group[] }>("GET", "/apis");
  const apiGroups = ["", ...groups.map(({ name }) => name).filter((name) => name !== "capsule.clastix.io")];
  return roleFor([userNamed(user)], [{ apiGroups, resources: ["*"], verbs: ["*"] }], { name: user });
}

/** One object of each cluster-scoped type that Kubernetes stores, by kind. */
export const CLUSTER_SCOPED = Object.fromEntries(ALL.map((one) => [one.kind, one]));

/** What API servers answer and do not store. */
export const QUESTIONS = Object.fromEntries(
  [
    manifest("authentication.k8s.io/v1", "TokenReview", { spec: { token: "none" } }),
    manifest("authentication.k8s.io/v1", "SelfSubjectReview"),
    manifest("authorization.k8s.io/v1", "SubjectAccessReview", {
      spec: { user: "none", nonResourceAttributes: { path: "/", verb: "get" } },
    }),
    manifest("authorization.k8s.io/v1", "SelfSubjectAccessReview", {
      spec: { nonResourceAttributes: { path: "/", verb: "get" } },
    }),
    manifest("authorization.k8s.io/v1", "SelfSubjectRulesReview", { spec: { namespace: "default" } }),
  ].map((one) => [one.kind, { ...one, metadata: {} }]),
);
