import Type from "typebox";
import { stringify } from "yaml";
import { TerminalError } from "../../providers/errors";
import type { Manifest } from "../../providers/kubernetes/client";
import type { AnyKind } from "../contract/kind";
import { type Configuration, configurationSchema, keySchemas, usesVolume } from "./configuration";
import { isModePolicy, platformManifests } from "./manifests";

type Key = keyof Configuration;

/** Keys whose value stands in the manifests as it is: each is a value of the chart. */
const VALUES: readonly Key[] = [
  ...(["image", "imagePullPolicy", "stateSecret", "postgresSecret", "replicas", "shards", "concurrency"] as const),
  ...(["driftInterval", "logLevel", "postgresTables"] as const),
];
/** Keys whose value is a map or a list that stands in the manifests as it is, possibly beside other entries. */
const STRUCTURES: readonly Key[] = [
  ...(["resources", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints"] as const),
  ...(["labels", "annotations", "podAnnotations"] as const),
];
/** A text that is left out where it is empty, and a list of the names of objects. */
const [PRIORITY, PULL_SECRETS] = ["priorityClassName", "imagePullSecrets"] as const satisfies readonly Key[];
/** Of a volume there is one replica. */
const VOLUME_VALUES: readonly Key[] = [...VALUES.filter((key) => key !== "replicas"), "storageSize"];
/** Switches that add all objects of a kind: each is a value of the chart. */
const SWITCHES: Readonly<Record<string, Key>> = {
  CustomResourceDefinition: "crds",
  ValidatingAdmissionPolicy: "crds",
  ValidatingAdmissionPolicyBinding: "crds",
  MutatingAdmissionPolicy: "crds",
  MutatingAdmissionPolicyBinding: "crds",
  NetworkPolicy: "networkPolicy",
  ServiceMonitor: "serviceMonitor",
};

/** Where the values of secret keys belong instead. */
const IN_SECRETS: Readonly<Record<string, string>> = {
  passphrase: "put it under the key passphrase into stateSecret",
  backendUrl: "put it under the key backendUrl into stateSecret and set backendFromSecret",
  postgresPassword:
    "put PSQL_HOST, PSQL_DBNAME, PSQL_USER and PSQL_PASSWORD into postgresSecret, in place of postgresHost and its keys",
};

/** Integers that no configuration has, in place of values of the chart. */
const FIRST_MARK = 900_000_001;
const NAMESPACE_MARK = "helm-release-namespace";

/**
 * A Helm chart of the manifests that `kindstack install --print` prints. Configuration that a manifest repeats verbatim becomes
 * a value of the chart; configuration that decides which objects there are is fixed when the chart is made. The namespace is
 * the release's.
 *
 * @returns the files of the chart, by their path in its folder
 * @throws TerminalError `Misconfigured` for a configuration with Secrets' values
 */
export async function helmChart(
  configuration: Configuration,
  kinds: readonly AnyKind[],
  version: string,
): Promise<Record<string, string>> {
  // A chart with a password in it would be copied around with it.
  const secret = [...keySchemas.keys()].find((key) => keySchemas.get(key)?.secret && key in configuration);
  if (secret !== undefined) {
    throw new TerminalError("Misconfigured", `kindstack:${secret}: a chart contains no Secrets; ${IN_SECRETS[secret]}`);
  }
  const keys = usesVolume(configuration) ? VOLUME_VALUES : VALUES;
  const marks = new Map(
    keys.map((key, index) => [key, typeof configuration[key] === "number" ? FIRST_MARK + index : markOf(key)]),
  );
  const switches = Object.values(SWITCHES);
  const structures = STRUCTURES.map((key) => {
    const mark = { [markOf(key)]: "" };
    return [key, Array.isArray(configuration[key]) ? [mark] : mark];
  });
  const marked = {
    ...configuration,
    ...Object.fromEntries([...switches.map((key) => [key, true]), ...marks, ...structures]),
    [PRIORITY]: markOf(PRIORITY),
    [PULL_SECRETS]: [markOf(PULL_SECRETS)],
    namespace: NAMESPACE_MARK,
  } as Configuration;
  const manifests = (await platformManifests(marked, kinds)).filter(({ kind }) => kind !== "Namespace");
  const values = pick({ postgresTables: "", ...configuration }, [
    ...switches,
    ...keys,
    PULL_SECRETS,
    PRIORITY,
    ...STRUCTURES,
  ]);
  return {
    "Chart.yaml": stringify({
      apiVersion: "v2",
      name: "kindstack",
      description: "A Kubernetes operator in which a custom resource is a Pulumi stack",
      type: "application",
      version,
      appVersion: version,
    }),
    "values.yaml": Object.entries(values)
      .map(([key, value]) => `# ${keySchemas.get(key)?.description}\n${stringify({ [key]: value })}`)
      .join("\n"),
    "values.schema.json": `${JSON.stringify(
      Type.Object(pick(configurationSchema.properties, Object.keys(values) as Key[]) as never, {
        additionalProperties: false,
      }),
      null,
      2,
    )}\n`,
    ...Object.fromEntries(
      manifests.map((manifest) => [`templates/${fileNameOf(manifest)}`, template(manifest, configuration, marks)]),
    ),
  };
}

/** Names the namespace where that is not the release's: there may be objects of the same name. */
function fileNameOf({ kind, metadata: { name, namespace = NAMESPACE_MARK } }: Manifest): string {
  const parts = namespace === NAMESPACE_MARK ? [kind, name] : [kind, namespace, name];
  return `${parts.join("-")}.yaml`.toLowerCase();
}

function template(manifest: Manifest, { keepState }: Configuration, marks: ReadonlyMap<Key, string | number>): string {
  const { kind, metadata } = manifest;
  const kept =
    kind === "CustomResourceDefinition" || isModePolicy(manifest) || (keepState && kind === "PersistentVolumeClaim");
  const annotations = { ...metadata.annotations, "helm.sh/resource-policy": "keep" };
  const object = kept ? { ...manifest, metadata: { ...metadata, annotations } } : manifest;
  let text = stringify(object, { aliasDuplicateObjects: false, lineWidth: 0 }).replaceAll("{{", '{{ "{{" }}');
  for (const [key, mark] of marks) {
    const whole = new RegExp(`(^\\s*(?:- )?[\\w.-]+: |^\\s*- )${mark}$`, "gm");
    const quoted = typeof mark === "string" ? " | quote" : "";
    text = text.replace(whole, `$1{{ .Values.${key}${quoted} }}`).replaceAll(String(mark), `{{ .Values.${key} }}`);
  }
  text = withLists(withStructures(text));
  text = text.replaceAll(NAMESPACE_MARK, "{{ .Release.Namespace }}");
  const condition = SWITCHES[kind];
  return condition === undefined ? text : `{{- if .Values.${condition} }}\n${text}{{- end }}\n`;
}

function markOf(key: Key): string {
  return `helm-value-${key.toLowerCase()}-end`;
}

/** Puts maps and lists in place of their marks; a parent that has nothing else is left out where they are empty. */
function withStructures(text: string): string {
  return STRUCTURES.reduce((result, key) => {
    const mark = `${markOf(key)}: ""`;
    const alone = new RegExp(`^( *)(\\w+):\\n( +)(?:- )?${mark}\\n(?!\\3[^ -])`, "gm");
    const beside = new RegExp(`^( *)${mark}\\n`, "gm");
    const yaml = (indent: string) => `{{- toYaml . | nindent ${indent.length} }}`;
    const block = (before: string, indent: string) =>
      `{{- with .Values.${key} }}\n${before}${yaml(indent)}\n{{- end }}\n`;
    return result
      .replace(alone, (_, outer: string, parent: string, indent: string) => block(`${outer}${parent}:\n`, indent))
      .replace(beside, (_, indent: string) => block("", indent));
  }, text);
}

function withLists(text: string): string {
  return text
    .replace(
      new RegExp(`^( *)${PRIORITY}: ${markOf(PRIORITY)}\\n`, "m"),
      `{{- with .Values.${PRIORITY} }}\n$1${PRIORITY}: {{ . | quote }}\n{{- end }}\n`,
    )
    .replace(
      new RegExp(`^( *)${PULL_SECRETS}:\\n( *)- name: ${markOf(PULL_SECRETS)}\\n`, "m"),
      `{{- with .Values.${PULL_SECRETS} }}\n$1${PULL_SECRETS}:\n{{- range . }}\n$2- name: {{ . | quote }}\n{{- end }}\n{{- end }}\n`,
    );
}

function pick<T extends object, K extends keyof T>(from: T, keys: readonly K[]): Pick<T, K> {
  return Object.fromEntries(keys.map((key) => [key, from[key]])) as Pick<T, K>;
}
