import { afterAll, beforeAll, expect, it } from "vitest";
import { isApiError } from "../../../providers/kubernetes/client";
import { findFieldDrift } from "../../../providers/kubernetes/field-drift";
import { withStoredData } from "../../../providers/kubernetes/object-types";
import type { Manifest } from "../../../providers/kubernetes/types";
import { controlPlane } from "../../control-plane";
import { TestCluster } from "./test-cluster";

/*
 * What the API server makes of built-in types is no difference: each of their fields is given empty, and each quantity in
 * other spellings, by the schemas that the API server itself has.
 */

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await TestCluster.open(controlPlane());
});
afterAll(() => cluster.close());

const labels = { app: "a" };
const containers = [
  {
    name: "b",
    image: "b:1",
    env: [{ name: "A", value: "1" }],
    ports: [{ containerPort: 80 }, { containerPort: 53, protocol: "UDP" }],
    resources: { requests: { cpu: "100m", memory: "64Mi" } },
    readinessProbe: { httpGet: { path: "/", port: 80 } },
    volumeMounts: [{ name: "v", mountPath: "/v" }],
    securityContext: { capabilities: { drop: ["ALL"] } },
  },
  { name: "a", image: "a:1" },
];
const podSpec = { containers, volumes: [{ name: "v", emptyDir: { sizeLimit: "1Gi" } }] };
const template = { metadata: { labels }, spec: podSpec };
/** The fields of Pods are tried once. */
const small = { metadata: { labels }, spec: { containers: [{ name: "a", image: "a:1" }] } };
const once = { spec: { ...small.spec, restartPolicy: "Never" } };
const selector = { matchLabels: labels };
const rules = [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }];

/** A valid manifest of each type, without its name. */
const TYPES: Record<string, Record<string, unknown>> = {
  "v1/ConfigMap": { data: { a: "1000m" } },
  "v1/Secret": { stringData: { a: "1" }, data: { b: "Yg==" } },
  "v1/Service": {
    spec: {
      selector: labels,
      ports: [
        { port: 80, name: "http" },
        { port: 53, protocol: "UDP", name: "dns" },
      ],
    },
  },
  "v1/ServiceAccount": {},
  "v1/Pod": { spec: podSpec },
  "v1/PersistentVolumeClaim": {
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  },
  "v1/PersistentVolume": {
    spec: { accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" }, hostPath: { path: "/v" } },
  },
  "v1/ResourceQuota": { spec: { hard: { cpu: "1", pods: "10" } } },
  "v1/LimitRange": {
    spec: { limits: [{ type: "Container", default: { cpu: "1" }, defaultRequest: { cpu: "500m" } }] },
  },
  "v1/Namespace": {},
  "apps/v1/Deployment": { spec: { replicas: 1, selector, template } },
  "apps/v1/StatefulSet": { spec: { serviceName: "a", selector, template: small } },
  "apps/v1/DaemonSet": { spec: { selector, template: small } },
  "batch/v1/Job": { spec: { template: once } },
  "batch/v1/CronJob": {
    spec: {
      schedule: "0 * * * *",
      jobTemplate: { spec: { template: once } },
    },
  },
  "networking.k8s.io/v1/Ingress": {
    spec: {
      rules: [
        {
          host: "a.example.com",
          http: {
            paths: [{ path: "/", pathType: "Prefix", backend: { service: { name: "a", port: { number: 80 } } } }],
          },
        },
      ],
    },
  },
  "networking.k8s.io/v1/NetworkPolicy": {
    spec: { podSelector: selector, ingress: [{ from: [{ podSelector: {} }], ports: [{ port: 80 }] }] },
  },
  "policy/v1/PodDisruptionBudget": { spec: { minAvailable: 1, selector } },
  "autoscaling/v2/HorizontalPodAutoscaler": {
    spec: {
      scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "a" },
      maxReplicas: 3,
      metrics: [
        { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } } },
      ],
    },
  },
  "rbac.authorization.k8s.io/v1/Role": { rules },
  "rbac.authorization.k8s.io/v1/ClusterRole": { rules },
  "rbac.authorization.k8s.io/v1/RoleBinding": {
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "a" },
    subjects: [{ kind: "Group", name: "g" }],
  },
  "storage.k8s.io/v1/StorageClass": { provisioner: "example.com/p" },
  "scheduling.k8s.io/v1/PriorityClass": { value: 10 },
  "coordination.k8s.io/v1/Lease": { spec: { holderIdentity: "a", renewTime: "2026-01-01T01:00:00.000000+01:00" } },
  "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy": {
    spec: {
      matchConstraints: {
        resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
      },
      validations: [{ expression: "true" }],
    },
  },
  "apiextensions.k8s.io/v1/CustomResourceDefinition": {
    spec: {
      group: "example.com",
      scope: "Namespaced",
      names: { kind: "Thing", plural: "things" },
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
    },
  },
};
const CLUSTERED = /^v1\/(Namespace|PersistentVolume)$|Class$|ClusterRole$|AdmissionPolicy$|Definition$/;

interface Schema {
  $ref?: string;
  allOf?: Schema[];
  type?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema;
  "x-kubernetes-group-version-kind"?: { group: string; version: string; kind: string }[];
}

const documents = new Map<string, Record<string, Schema>>();

async function schemasOf(apiVersion: string): Promise<Record<string, Schema>> {
  const known = documents.get(apiVersion);
  if (known !== undefined) return known;
  const path = apiVersion.includes("/") ? `apis/${apiVersion}` : `api/${apiVersion}`;
  const document = await cluster.client.json<{ components: { schemas: Record<string, Schema> } }>(
    "GET",
    `/openapi/v3/${path}`,
  );
  documents.set(apiVersion, document.components.schemas);
  return document.components.schemas;
}

const QUANTITY = "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity";
const SPELLINGS: Record<string, unknown[]> = {
  "1": ["1000m", 1, "1.0", "1e0", "0.001k"],
  "100m": ["0.1", "0.10", 0.1, "1e-1", "100000u"],
  "500m": ["0.5", ".5"],
  "10": ["10000m", 10, "1e1"],
  "64Mi": ["65536Ki", "67108864", "0.0625Gi"],
  "1Gi": ["1024Mi", "1073741824", "1048576Ki"],
};
const EMPTY: Record<string, unknown> = { string: "", boolean: false, integer: 0, number: 0, array: [], object: {} };

/** Versions of a value in each of which one field is empty, or one quantity is written otherwise. */
function* variants(value: unknown, given: Schema, schemas: Record<string, Schema>): Generator<unknown> {
  const reference = given.$ref ?? given.allOf?.[0]?.$ref;
  if (reference === QUANTITY) return yield* SPELLINGS[String(value)] ?? [];
  const schema = reference === undefined ? given : (schemas[reference.split("/").at(-1) ?? ""] ?? {});
  if (Array.isArray(value)) {
    if (value.length > 1) yield [...value].reverse();
    for (const [index, item] of value.entries()) {
      for (const variant of variants(item, schema.items ?? {}, schemas)) yield value.with(index, variant);
    }
  } else if (typeof value === "object" && value !== null) {
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      if (name in value) continue;
      const type =
        property.type ?? schemas[(property.$ref ?? property.allOf?.[0]?.$ref)?.split("/").at(-1) ?? ""]?.type;
      for (const empty of [EMPTY[type ?? "object"], null]) yield { ...value, [name]: empty };
    }
    for (const [name, child] of Object.entries(value)) {
      const property = schema.properties?.[name] ?? schema.additionalProperties ?? {};
      for (const variant of variants(child, property, schemas)) yield { ...value, [name]: variant };
    }
  }
}

const seen = { accepted: 0, refused: 0 };

it.each(Object.keys(TYPES))("the API server's own spelling of a %s is no difference", async (type) => {
  const split = type.lastIndexOf("/");
  const [apiVersion, kind] = [type.slice(0, split), type.slice(split + 1)];
  const isDefinition = kind === "CustomResourceDefinition";
  const metadata = {
    name: isDefinition ? "things.example.com" : "a",
    ...(!CLUSTERED.test(type) && { namespace: cluster.namespace }),
  };
  const schemas = await schemasOf(apiVersion);
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
  const schema = Object.values(schemas).find((candidate) =>
    candidate["x-kubernetes-group-version-kind"]?.some(
      (named) => named.group === group && named.version === version && named.kind === kind,
    ),
  );
  if (schema === undefined) throw new Error(`there is no schema of ${type}`);
  const { metadata: _, apiVersion: __, kind: ___, status: ____, ...properties } = schema.properties ?? {};
  const base = TYPES[type] ?? {};
  const different: unknown[] = [];
  let accepted = 0;
  for (const body of [base, ...variants(base, { properties }, schemas)]) {
    const manifest = withStoredData({ apiVersion, kind, metadata, ...(body as object) }) as Manifest;
    try {
      const { object } = await cluster.client.apply(manifest, { dryRun: true });
      accepted++;
      const drift = findFieldDrift(manifest, object);
      if (drift.length > 0) different.push({ drift, manifest });
    } catch (error) {
      if (!isApiError(error, 400, 403, 422, 500)) throw error;
      if (body === base) throw error;
      seen.refused++;
    }
  }
  seen.accepted += accepted;
  expect(different).toEqual([]);
  expect(accepted).toBeGreaterThan(0);
});

it("most of what is tried is accepted", () => {
  expect(seen.accepted).toBeGreaterThan(500);
  expect(seen.accepted).toBeGreaterThan(seen.refused);
});
