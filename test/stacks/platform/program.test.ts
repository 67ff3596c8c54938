import { beforeAll, describe, expect, it } from "vitest";
import { customResourceDefinition } from "../../../stacks/contract/crd";
import { kindName } from "../../../stacks/contract/kind";
import { operatorRules } from "../../../stacks/contract/rbac";
import { kinds } from "../../../stacks/kinds/index";
import { withLoadedKinds } from "../../../stacks/platform/kinds";
import { parseConfiguration } from "../../../stacks/platform/parse-configuration";
import { installPlatform } from "../../../stacks/platform/program";
import { type Registration, registrationsOf } from "./mocked-engine";

const namespace = "kindstack-system";
const labels = { "app.kubernetes.io/name": "kindstack", "app.kubernetes.io/part-of": "kindstack" };
const selector = { "app.kubernetes.io/name": "kindstack", "app.kubernetes.io/component": "operator" };
const metadata = { name: "kindstack", namespace, labels };

const install = (values: Record<string, string> = {}) => {
  const { configuration, kinds: chosen } = withLoadedKinds(parseConfiguration({ install: "true", ...values }, "1.2.3"));
  return registrationsOf(() => installPlatform(configuration, chosen));
};

/** With one kind: what does not depend on kinds is there in a fraction of the time. */
const installOne = (values: Record<string, string> = {}) => install({ kinds: "podsets", ...values });

function find(registrations: Registration[], name: string): Registration {
  const found = registrations.find((registration) => registration.name === name);
  if (found === undefined) throw new Error(`no ${name} among ${registrations.map((each) => each.name).join(", ")}`);
  return found;
}

interface PodTemplate {
  metadata: object;
  spec: {
    containers: { env: { name: string; value?: string; valueFrom?: unknown }[]; [field: string]: unknown }[];
    volumes: { name: string; [source: string]: unknown }[];
    [field: string]: unknown;
  };
}
function podOf(registrations: Registration[]): PodTemplate {
  const { spec } = find(registrations, "Deployment/kindstack-system/kindstack").inputs as {
    spec: { template: PodTemplate };
  };
  return spec.template;
}
const variable = (registrations: Registration[], name: string) =>
  podOf(registrations).spec.containers[0]?.env.find((each) => each.name === name);

/** The CRDs of plans and approvals, and all policies that come with the CRDs. */
const planNames = ["plans.kindstack.dev", "approvals.kindstack.dev"];
const policyNames = [
  "installation.kindstack.dev",
  ...planNames,
  ...["namespaces.kindstack.dev", ...kinds.map(kindName)].map((name) => `mode.${name}`),
  ...kinds.map((kind) => `finalizer.${kindName(kind)}`),
];

/* What it holds is in deploy/install.yaml, which is printed from it; here is what no manifest shows. */
describe("the installation with nothing configured", () => {
  let registrations: Registration[];
  beforeAll(async () => {
    registrations = await install();
  });

  it.each(kinds.map((kind) => [kindName(kind), kind] as const))("has the CRD %s, which outlives it", (name, kind) => {
    const { inputs, retainOnDelete } = find(registrations, `CustomResourceDefinition/${name}`);

    const { metadata, ...definition } = customResourceDefinition(kind);
    const installedIn = { "kindstack.dev/installed-in": namespace };
    const labelled = { ...metadata, labels: { ...metadata.labels, ...installedIn } };
    expect(inputs).toEqual(JSON.parse(JSON.stringify({ ...definition, metadata: labelled })));
    expect(retainOnDelete).toBe(true);
  });

  it("runs it by the restricted standard, with a root file system that it cannot write to", () => {
    const { spec } = podOf(registrations);

    expect(spec).toMatchObject({
      serviceAccountName: "kindstack",
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 65532,
        runAsGroup: 65532,
        fsGroup: 65532,
        seccompProfile: { type: "RuntimeDefault" },
      },
    });
    expect(spec.containers).toHaveLength(1);
    expect(spec.containers[0]).toMatchObject({
      image: "kindstack:1.2.3",
      args: [
        ...["run", "--concurrency", "8", "--shards", "1", "--drift-interval", "30", "--metrics-port", "8443"],
        ...["--admission-port", "9443", "--admission-service", "kindstack", "--admission-owner", "kindstack-admission"],
        ...["--preview-port", "9444", "--preview-names", "kindstack.kindstack-system.svc"],
        ...["kindstack.kindstack-system.svc.cluster.local", "localhost"],
      ],
      ports: [
        { name: "http", containerPort: 8080 },
        { name: "metrics", containerPort: 8443 },
        { name: "admission", containerPort: 9443 },
        { name: "previews", containerPort: 9444 },
      ],
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      },
      resources: { requests: { cpu: "100m", memory: "256Mi" }, limits: { memory: "1Gi" } },
      startupProbe: { httpGet: { path: "/healthz", port: "http" } },
      livenessProbe: { httpGet: { path: "/healthz", port: "http" } },
      readinessProbe: { httpGet: { path: "/readyz", port: "http" } },
    });
  });

  it("tells it of a key service, beside which there may be no passphrase", async () => {
    const provided = await installOne({ secretsProvider: "awskms://alias/kindstack" });
    expect(variable(provided, "KINDSTACK_SECRETS_PROVIDER")?.value).toBe("awskms://alias/kindstack");
    expect(podOf(provided).spec.volumes).toContainEqual(
      expect.objectContaining({ name: "passphrase", secret: expect.objectContaining({ optional: true }) }),
    );
    expect(variable(registrations, "KINDSTACK_SECRETS_PROVIDER")).toBeUndefined();
  });

  it("makes the Deployment when all that it needs is there", () => {
    const { dependsOn } = find(registrations, "Deployment/kindstack-system/kindstack");

    expect(dependsOn).toEqual(
      expect.arrayContaining([
        "Namespace/kindstack-system",
        "ClusterRoleBinding/kindstack",
        "PersistentVolumeClaim/kindstack-system/kindstack-state",
        ...[...kinds.map(kindName), ...planNames].map((name) => `CustomResourceDefinition/${name}`),
      ]),
    );
    expect(find(registrations, "Service/kindstack-system/kindstack").dependsOn).toEqual(["Namespace/kindstack-system"]);
  });
});

describe("the installation", () => {
  it("has as many replicas as are wanted, on different nodes, of which a new one is there before an old one goes", async () => {
    const registrations = await installOne({ replicas: "3", shards: "24", backendFromSecret: "true" });

    const { spec } = find(registrations, "Deployment/kindstack-system/kindstack").inputs as {
      spec: { template: { spec: object } };
    };
    expect(spec).toMatchObject({
      replicas: 3,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
    });
    expect(spec.template.spec).toMatchObject({
      containers: [{ args: expect.arrayContaining(["--shards", "24"]) }],
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { podAffinityTerm: { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: selector } } },
          ],
        },
      },
    });
  });

  it("takes the place of Pods as it is given, with selectors of everything", async () => {
    const apart = { topologyKey: "kubernetes.io/hostname", labelSelector: {}, namespaceSelector: {} };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [apart] } };
    const spread = { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule", labelSelector: {} };
    const registrations = await installOne({
      affinity: JSON.stringify(affinity),
      topologySpreadConstraints: JSON.stringify([spread]),
    });

    expect(find(registrations, "Deployment/kindstack-system/kindstack").inputs).toMatchObject({
      spec: { template: { spec: { affinity, topologySpreadConstraints: [spread] } } },
    });
  });

  it("makes the Secrets that it has values for, and the state holds them as secrets", async () => {
    const registrations = await installOne({
      passphrase: "correct horse",
      backendUrl: "postgres://user:hunter2@db/state",
      postgresHost: "db",
      postgresDatabase: "app",
      postgresUser: "kindstack",
      postgresPassword: "hunter3",
      postgresTables: "students",
    });

    const state = find(registrations, "Secret/kindstack-system/kindstack-state");
    const postgres = find(registrations, "Secret/kindstack-system/kindstack-postgres");
    expect(state.isSecret("stringData") && postgres.isSecret("stringData")).toBe(true);
    expect(state.inputs.stringData).toEqual({
      passphrase: "correct horse",
      backendUrl: "postgres://user:hunter2@db/state",
    });
    expect(postgres.inputs.stringData).toEqual({
      PSQL_HOST: "db",
      PSQL_PORT: "5432",
      PSQL_DBNAME: "app",
      PSQL_USER: "kindstack",
      PSQL_PASSWORD: "hunter3",
      PGSSLMODE: "verify-full",
    });
    const others = registrations.filter(({ type }) => type !== "kubernetes:core/v1:Secret");
    expect(JSON.stringify(others)).not.toMatch(/hunter|correct horse/);
    expect(variable(registrations, "PULUMI_BACKEND_URL")?.valueFrom).toEqual({
      secretKeyRef: { name: "kindstack-state", key: "backendUrl" },
    });
  });

  it("has no volume for a backend that is elsewhere", async () => {
    const registrations = await installOne({ backendUrl: "s3://bucket" });

    expect(registrations.map(({ type }) => type)).not.toContain("kubernetes:core/v1:PersistentVolumeClaim");
    expect(podOf(registrations).spec.volumes.map(({ name }) => name)).toEqual([
      "work",
      "tmp",
      "passphrase",
      "postgres",
    ]);
    expect(variable(registrations, "PULUMI_BACKEND_URL")?.value).toBe("s3://bucket");
  });

  it("is scraped by the Prometheus operator where that is wanted", async () => {
    const registrations = await installOne({ serviceMonitor: "true", networkPolicy: "false" });

    expect(find(registrations, "ServiceMonitor/kindstack-system/kindstack").inputs).toEqual({
      apiVersion: "monitoring.coreos.com/v1",
      kind: "ServiceMonitor",
      metadata,
      spec: {
        selector: { matchLabels: selector },
        endpoints: [
          {
            port: "metrics",
            path: "/metrics",
            scheme: "https",
            bearerTokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token",
            tlsConfig: { insecureSkipVerify: true },
          },
        ],
      },
    });
    expect(registrations.map(({ name }) => name)).not.toContain("NetworkPolicy/kindstack-system/kindstack");
  });

  it("shows a certificate of yours where there is one, and lets Prometheus verify it", async () => {
    const registrations = await installOne({ serviceMonitor: "true", metricsSecret: "metrics-tls" });
    const { containers, volumes } = podOf(registrations).spec;

    expect(containers[0]?.args).toEqual(expect.arrayContaining(["--metrics-certificate", "/etc/kindstack-metrics"]));
    expect(volumes).toContainEqual({
      name: "metrics-certificate",
      secret: { secretName: "metrics-tls", defaultMode: 0o440 },
    });
    expect(find(registrations, "ServiceMonitor/kindstack-system/kindstack").inputs).toMatchObject({
      spec: {
        endpoints: [
          {
            tlsConfig: {
              serverName: "kindstack.kindstack-system.svc",
              ca: { secret: { name: "metrics-tls", key: "ca.crt" } },
            },
          },
        ],
      },
    });
  });

  it("lets only users with the right read the metrics", async () => {
    const registrations = await install();

    expect(find(registrations, "ClusterRole/kindstack-metrics-reader").inputs).toMatchObject({
      rules: [{ nonResourceURLs: ["/metrics"], verbs: ["get"] }],
    });
    const bindings = registrations.filter(({ type }) => type.endsWith(":ClusterRoleBinding"));
    expect(bindings.map(({ name }) => name)).toEqual([
      "ClusterRoleBinding/kindstack",
      "ClusterRoleBinding/kindstack-admission",
    ]);
  });

  it("lets the API servers alone ask for admission where they are known, by the groups that are configured", async () => {
    const registrations = await install({ admissionSources: '["10.0.0.0/28"]', capsuleUserGroups: '["a","b"]' });

    expect(find(registrations, "NetworkPolicy/kindstack-system/kindstack").inputs).toMatchObject({
      spec: { ingress: [{}, { ports: [{ port: 9443 }], from: [{ ipBlock: { cidr: "10.0.0.0/28" } }] }] },
    });
    expect(variable(registrations, "KINDSTACK_CAPSULE_USER_GROUPS")?.value).toBe("a,b");
  });

  it("may delete Ingresses only where the younger of two is to be deleted", async () => {
    const deletes = { apiGroups: ["networking.k8s.io"], resources: ["ingresses"], verbs: ["delete"] };
    const rulesWith = async (keys: Record<string, string>) => {
      const registrations = await install(keys);
      return [
        find(registrations, "ClusterRole/kindstack").inputs.rules,
        variable(registrations, "KINDSTACK_CAPSULE_DELETE_YOUNGER")?.value,
      ];
    };

    expect(await rulesWith({ deleteYounger: "true" })).toEqual([expect.arrayContaining([deletes]), "true"]);
    const [rules, value] = await rulesWith({});
    expect(JSON.stringify(rules)).not.toContain(JSON.stringify(deletes));
    expect(value).toBeUndefined();
  });

  it("serves no admission and no previews, and has no rights for them, where they are not wanted", async () => {
    const registrations = await install({ admission: "false", previews: "false" });

    expect(podOf(registrations).spec.containers[0]).toMatchObject({
      args: ["run", "--concurrency", "8", "--shards", "1", "--drift-interval", "30", "--metrics-port", "8443"],
      ports: [
        { name: "http", containerPort: 8080 },
        { name: "metrics", containerPort: 8443 },
      ],
    });
    const role = find(registrations, "Role/kindstack-system/kindstack").inputs as { rules?: { resources: string[] }[] };
    expect(role.rules?.map(({ resources }) => resources)).toEqual([["leases"]]);
    expect(registrations.map(({ name }) => name)).not.toContain("ClusterRole/kindstack-admission");
    expect(find(registrations, "ClusterRole/kindstack").inputs).toMatchObject({ rules: operatorRules(kinds) });
    expect(JSON.stringify(registrations)).not.toContain("webhookconfigurations");
    expect(find(registrations, "Service/kindstack-system/kindstack").inputs).toMatchObject({
      spec: { ports: [{ name: "metrics" }] },
    });
  });

  it("follows the rest of the configuration", async () => {
    const registrations = await install({
      namespace: "ops",
      crds: "false",
      image: "registry.example.com/kindstack:1",
      imagePullPolicy: "Always",
      imagePullSecrets: "registry",
      environmentSecrets: "cloud",
      serviceAccountAnnotations: '{"identity.example.com/role":"kindstack"}',
      storageSize: "5Gi",
      storageClass: "fast",
      postgresTables: "students,app.*",
      clusterName: "prod",
      memcachedImage: "memcached:1.6",
      concurrency: "2",
      driftInterval: "600",
      logLevel: "debug",
      resources: '{"requests":{"cpu":"1","memory":"512Mi"},"limits":{"memory":"2Gi"}}',
      egressPorts: "[443]",
      postgresPort: "5433",
    });

    const { spec } = podOf(
      registrations.map((each) => ({ ...each, name: each.name.replace("/ops/", "/kindstack-system/") })),
    );
    expect(spec).toMatchObject({ imagePullSecrets: [{ name: "registry" }] });
    expect(spec.containers[0]).toMatchObject({
      image: "registry.example.com/kindstack:1",
      imagePullPolicy: "Always",
      args: [
        ...["run", "--concurrency", "2", "--shards", "1", "--drift-interval", "600", "--metrics-port", "8443"],
        ...[
          "--admission-port",
          "9443",
          "--admission-service",
          "kindstack",
          "--admission-owner",
          "kindstack-admission.ops",
        ],
        ...["--preview-port", "9444", "--preview-names", "kindstack.ops.svc"],
        ...["kindstack.ops.svc.cluster.local", "localhost"],
      ],
      envFrom: [{ secretRef: { name: "cloud" } }],
      resources: { requests: { cpu: "1", memory: "512Mi" }, limits: { memory: "2Gi" } },
    });
    expect(spec.containers[0]?.env).toEqual(
      expect.arrayContaining([
        { name: "KINDSTACK_LOG_LEVEL", value: "debug" },
        { name: "KINDSTACK_POSTGRES_TABLES", value: "students,app.*" },
        { name: "KINDSTACK_CLUSTER", value: "prod" },
        { name: "MEMCACHED_IMAGE", value: "memcached:1.6" },
      ]),
    );
    expect(find(registrations, "ServiceAccount/ops/kindstack").inputs).toMatchObject({
      metadata: { annotations: { "identity.example.com/role": "kindstack" } },
    });
    expect(find(registrations, "PersistentVolumeClaim/ops/kindstack-state").inputs).toMatchObject({
      spec: { storageClassName: "fast", resources: { requests: { storage: "5Gi" } } },
    });
    expect(find(registrations, "ClusterRoleBinding/kindstack.ops").inputs).toMatchObject({
      subjects: [{ namespace: "ops" }],
    });
    expect(find(registrations, "NetworkPolicy/ops/kindstack").inputs).toMatchObject({
      spec: { egress: [{}, { ports: [{ port: 443 }, { port: 5433 }] }] },
    });
    expect(registrations.map(({ type }) => type)).not.toContain(
      "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition",
    );
  });
});

describe("an installation of chosen kinds", () => {
  it("has the CRDs, the rights and the argument of these alone, and no admission unless one has a say in it", async () => {
    const registrations = await install({ kinds: '["postgreswriters","tenants.multitenancy"]' });
    const names = registrations.map(({ name }) => name);
    const chosen = kinds.filter(
      ({ plural, group }) => plural === "postgreswriters" || group.startsWith("multitenancy"),
    );

    expect(names.filter((name) => name.startsWith("CustomResourceDefinition/")).sort()).toEqual(
      [...chosen.map(kindName), ...planNames].map((name) => `CustomResourceDefinition/${name}`).sort(),
    );
    expect(find(registrations, "ClusterRole/kindstack").inputs).toMatchObject({
      rules: operatorRules(chosen),
    });
    const [container] = podOf(registrations).spec.containers;
    expect(container?.args).toEqual(
      expect.arrayContaining(["--kinds", "postgreswriters.demo.yash.com,tenants.multitenancy.codereliant.io"]),
    );
    expect(container?.args).not.toContain("--admission-port");
    expect(JSON.stringify(registrations)).not.toMatch(/capsule|podsets|memcacheds|kindstack-admission-tls/);
  });

  it("records who changes objects, where the author of a change may not approve it", async () => {
    const registrations = await installOne({ authorMayNotApprove: "true" });
    expect(podOf(registrations).spec.containers[0]?.args).toContain("--author-may-not-approve");
    const mutations = registrations.filter(({ name }) => name.startsWith("MutatingAdmissionPolicy"));
    const [podSet] = kinds.filter(({ plural }) => plural === "podsets").map(kindName);
    expect(mutations.map(({ name }) => name).sort()).toEqual([
      `MutatingAdmissionPolicy/author.${podSet}`,
      `MutatingAdmissionPolicyBinding/author.${podSet}`,
    ]);
    expect(mutations.every(({ retainOnDelete }) => retainOnDelete)).toBe(true);
    expect(podOf(await installOne()).spec.containers[0]?.args).not.toContain("--author-may-not-approve");
  });

  it("mounts an image of further kinds where the operator looks for them, and no such volume without one", async () => {
    const { containers, volumes } = podOf(await installOne({ kindsImage: "registry.example.com/notice:1" })).spec;
    const mount = { name: "kinds", mountPath: "/app/kinds" };

    expect(volumes).toContainEqual({ name: "kinds", image: { reference: "registry.example.com/notice:1" } });
    expect(containers[0]?.volumeMounts).toContainEqual(mount);
    expect(podOf(await installOne()).spec.containers[0]?.volumeMounts).not.toContainEqual(mount);
  });

  it("refuses a kind that does not exist, and a proxy without the tenants that it is for", () => {
    const load = (values: Record<string, string>) => withLoadedKinds(parseConfiguration(values, "1.2.3"));
    expect(() => load({ kinds: "sheep" })).toThrow("kindstack:kinds: there is no kind sheep");
    expect(() => load({ kinds: "tenants" })).toThrow("name the group");
    expect(() => load({ kinds: "podsets", proxy: "true" })).toThrow(
      "kindstack:proxy: true needs tenants.capsule.clastix.io among the kinds",
    );
  });
});

describe("what `pulumi destroy` leaves", () => {
  const values = {
    passphrase: "p",
    postgresHost: "db",
    postgresDatabase: "d",
    postgresUser: "u",
    postgresPassword: "w",
    postgresTables: "students",
  };
  const kept = (registrations: Registration[]) =>
    registrations.filter(({ retainOnDelete }) => retainOnDelete).map(({ name }) => name);
  const definitions = [
    ...[...kinds.map(kindName), ...planNames].map((name) => `CustomResourceDefinition/${name}`),
    ...policyNames.flatMap((name) => [`ValidatingAdmissionPolicy/${name}`, `ValidatingAdmissionPolicyBinding/${name}`]),
  ];

  it("is, unless told otherwise, the state, its passphrase and the namespace of both, and always the CRDs with their policies", async () => {
    expect(kept(await install(values)).sort()).toEqual(
      [
        ...definitions,
        "Namespace/kindstack-system",
        "PersistentVolumeClaim/kindstack-system/kindstack-state",
        "Secret/kindstack-system/kindstack-state",
      ].sort(),
    );
    expect(kept(await install({ ...values, keepState: "false" })).sort()).toEqual([...definitions].sort());
  });

  it("has a claim that the next `up` adopts as it is, bound, without waiting for it to be pending", async () => {
    const { inputs } = find(await installOne(values), "PersistentVolumeClaim/kindstack-system/kindstack-state");

    expect(inputs).toMatchObject({ metadata: { annotations: { "pulumi.com/skipAwait": "true" } } });
  });

  it("is nothing protected, which would stop the rest from being deleted", async () => {
    expect((await install(values)).filter(({ protect }) => protect)).toEqual([]);
  });
});

describe("a changed value of a Secret", () => {
  const annotationOf = (registrations: Registration[]) =>
    (podOf(registrations).metadata as { annotations?: Record<string, string> }).annotations?.["kindstack.dev/secrets"];

  it("rolls the Pods, which do not see it otherwise", async () => {
    const first = annotationOf(await installOne({ passphrase: "one" }));

    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(annotationOf(await installOne({ passphrase: "one" }))).toBe(first);
    expect(annotationOf(await installOne({ passphrase: "two" }))).not.toBe(first);
    expect(annotationOf(await installOne())).toBeUndefined();
  });
});
