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

const POSTGRES = {
  ...{ postgresHost: "db", postgresDatabase: "app", postgresTables: "students" },
  ...{ postgresUser: "kindstack", postgresPassword: "hunter3" },
};

it("the installation makes the Secrets that it has values for, and the state holds them as secrets", async () => {
  const registrations = await installOne({
    passphrase: "correct horse",
    backendUrl: "postgres://user:hunter2@db/state",
    ...POSTGRES,
  });

  const state = find(registrations, "Secret/kindstack-system/kindstack-state");
  const postgres = find(registrations, "Secret/kindstack-system/kindstack-postgres");
  expect(state.isSecret("stringData") && postgres.isSecret("stringData")).toBe(true);
  expect(state.inputs.stringData).toEqual({
    passphrase: "correct horse",
    backendUrl: "postgres://user:hunter2@db/state",
  });
  expect(postgres.inputs.stringData).toEqual({
    ...{ PSQL_HOST: "db", PSQL_PORT: "5432", PSQL_DBNAME: "app" },
    ...{ PSQL_USER: "kindstack", PSQL_PASSWORD: "hunter3", PGSSLMODE: "verify-full" },
  });
  const others = registrations.filter(({ type }) => type !== "kubernetes:core/v1:Secret");
  expect(JSON.stringify(others)).not.toMatch(/hunter|correct horse/);
  expect(variable(registrations, "PULUMI_BACKEND_URL")?.valueFrom).toEqual({
    secretKeyRef: { name: "kindstack-state", key: "backendUrl" },
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

  it("refuses a kind that does not exist, and a proxy without the tenants that it is for", () => {
    const load = (values: Record<string, string>) => withLoadedKinds(parseConfiguration(values, "1.2.3"));
    expect(() => load({ kinds: "sheep" })).toThrow("kindstack:kinds: there is no kind sheep");
    expect(() => load({ kinds: "tenants" })).toThrow("name the group");
    expect(() => load({ kinds: "podsets", proxy: "true" })).toThrow(
      "kindstack:proxy: true needs tenants.capsule.clastix.io among the kinds",
    );
  });
});

/** What a configuration changes of the installation: objects that it has no more, and values that it has besides or no more. */
function differences(before: Registration[], after: Registration[]): string {
  const left = after.map(({ name }) => name);
  const [former, now] = [before, after].map((registrations) => registrations.flatMap(valuesOf)) as [string[], string[]];
  const lines = [
    ...before.filter(({ name }) => !left.includes(name)).map(({ name }) => `- ${name}`),
    ...former
      .filter((line) => !now.includes(line) && left.some((name) => line.startsWith(`${name}: `)))
      .map((line) => `- ${line}`),
    ...now.filter((line) => !former.includes(line)).map((line) => `+ ${line}`),
  ];
  return `${lines.join("\n")}\n`;
}

/** Each value with its path; items of lists by their names, where they have some. */
function valuesOf({ name, inputs }: Registration): string[] {
  const leaves = (value: unknown, path: string[]): string[] => {
    if (typeof value !== "object" || value === null || Object.keys(value).length === 0) {
      return [`${name}: ${path.join(".")} = ${JSON.stringify(value)}`];
    }
    if (!Array.isArray(value)) return Object.entries(value).flatMap(([key, inner]) => leaves(inner, [...path, key]));
    return value.flatMap((item, index) =>
      typeof item === "object" && item !== null && !("name" in item)
        ? [`${name}: ${path.join(".")}[] = ${JSON.stringify(item)}`]
        : leaves(item, [...path, typeof item === "object" ? String(item?.name) : String(index)]),
    );
  };
  return leaves(inputs, []);
}

describe("what a configuration changes, in a golden file", () => {
  const apart = { topologyKey: "kubernetes.io/hostname", labelSelector: {}, namespaceSelector: {} };
  const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [apart] } };
  const spread = { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule", labelSelector: {} };

  it.each<[string, Record<string, string>]>([
    ["key-service", { secretsProvider: "awskms://alias/kindstack" }],
    ["replicas", { replicas: "3", shards: "24", backendFromSecret: "true" }],
    ["placement", { affinity: JSON.stringify(affinity), topologySpreadConstraints: JSON.stringify([spread]) }],
    ["backend-elsewhere", { backendUrl: "s3://bucket" }],
    ["service-monitor", { serviceMonitor: "true", networkPolicy: "false" }],
    ["metrics-certificate", { serviceMonitor: "true", metricsSecret: "metrics-tls" }],
    ["further-kinds", { kindsImage: "registry.example.com/notice:1" }],
    ["image", { image: "registry.example.com/kindstack:1", imagePullPolicy: "Always", imagePullSecrets: "registry" }],
    ["state", { storageSize: "5Gi", storageClass: "fast" }],
    ["environment", { environmentSecrets: "cloud", serviceAccountAnnotations: '{"identity.example.com/role":"a"}' }],
    ["operation", { clusterName: "prod", concurrency: "2", driftInterval: "600", logLevel: "debug" }],
    ["resources", { resources: '{"requests":{"cpu":"1","memory":"512Mi"},"limits":{"memory":"2Gi"}}' }],
    ["network", { egressPorts: "[443]", postgresPort: "5433" }],
    ["no-definitions", { crds: "false" }],
  ])("%s", async (name, values) => {
    const changed = differences(await installOne(), await installOne(values));
    await expect(changed).toMatchFileSnapshot(`variants/${name}.txt`);
  });

  it.each<[string, Record<string, string>]>([
    ["admission-sources", { admissionSources: '["10.0.0.0/28"]', capsuleUserGroups: '["a","b"]' }],
    ["delete-younger", { deleteYounger: "true" }],
    ["no-admission", { admission: "false", previews: "false" }],
    ["settings-of-kinds", { postgresTables: "students,app.*", memcachedImage: "memcached:1.6" }],
  ])("of all kinds: %s", async (name, values) => {
    await expect(differences(await install(), await install(values))).toMatchFileSnapshot(`variants/${name}.txt`);
  });
});

describe("what `pulumi destroy` leaves", () => {
  const values = { passphrase: "p", ...POSTGRES };
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
