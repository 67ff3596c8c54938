import Type from "typebox";
import { stringify } from "yaml";
import { TerminalError } from "../../providers/errors";
import type { Manifest } from "../../providers/kubernetes/client";
import type { AnyKind } from "../contract/kind";
import { type Configuration, configurationSchema, usesVolume } from "./configuration";
import { platformManifests } from "./manifests";

/** The files of a Helm chart, by their path in its folder. */
export type ChartFiles = Record<string, string>;

type Key = keyof Configuration;

/** Keys whose value stands in the manifests as it is: each is a value of the chart. */
const VALUES = [
  ...["image", "imagePullPolicy", "stateSecret", "postgresSecret", "replicas", "shards", "concurrency"],
  ...["driftInterval", "logLevel", "cpuRequest", "memoryRequest", "memoryLimit"],
] as const as readonly Key[];
const VOLUME_VALUES: readonly Key[] = ["storageSize"];
/** Switches that add whole objects: each is a value of the chart, as long as it makes sense for the chosen kinds. */
const SWITCHES = ["crds", "networkPolicy", "serviceMonitor"] as const satisfies readonly Key[];
/** A chart with a password in it would be copied around with it. */
const SECRETS: readonly Key[] = ["passphrase", "postgresPassword", "backendUrl"];

/** Integers that no configuration has, in place of values of the chart. */
const FIRST_MARK = 900_000_001;

/**
 * A Helm chart of the manifests that `kindstack install --print` prints. What stands in them as it is becomes a value of the
 * chart; the rest of the configuration, which decides what there is, is fixed when the chart is made. The namespace is the
 * release's.
 *
 * @throws TerminalError `Misconfigured` for a configuration with Secrets' values
 */
export async function helmChart(
  configuration: Configuration,
  kinds: readonly AnyKind[],
  version: string,
): Promise<ChartFiles> {
  const secret = SECRETS.find((key) => configuration[key] !== undefined);
  if (secret !== undefined) {
    throw new TerminalError(
      "Misconfigured",
      `kindstack:${secret}: a chart contains no Secrets; create stateSecret and set backendFromSecret`,
    );
  }
  const volume = usesVolume(configuration);
  const keys = [...VALUES.filter((key) => key !== "replicas" || !volume), ...(volume ? VOLUME_VALUES : [])];
  const marks = new Map(keys.map((key, index) => [key, markOf(configuration[key], key, index)]));
  const marked = {
    ...configuration,
    ...Object.fromEntries(SWITCHES.map((key) => [key, true])),
    ...Object.fromEntries(marks),
    namespace: NAMESPACE_MARK,
  } as Configuration;
  const manifests = (await platformManifests(marked, kinds)).filter(({ kind }) => kind !== "Namespace");
  const templates = manifests.map((manifest): [string, string] => {
    const { kind, metadata } = manifest;
    return [`templates/${kind}-${metadata.name}.yaml`.toLowerCase(), template(manifest, configuration, marks)];
  });
  const values = { ...pick(configuration, SWITCHES), ...pick(configuration, keys) };
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
      .map(([key, value]) => `# ${descriptionOf(key as Key)}\n${stringify({ [key]: value })}`)
      .join("\n"),
    "values.schema.json": `${JSON.stringify(
      Type.Object(pick(configurationSchema.properties, Object.keys(values) as Key[]) as never, {
        additionalProperties: false,
      }),
      null,
      2,
    )}\n`,
    ...Object.fromEntries(templates),
  };
}

const NAMESPACE_MARK = "helm-release-namespace";

function markOf(value: unknown, key: Key, index: number): string | number {
  return typeof value === "number" ? FIRST_MARK + index : `helm-value-${key.toLowerCase()}-end`;
}

function template(manifest: Manifest, { keepState }: Configuration, marks: ReadonlyMap<Key, string | number>): string {
  const { kind } = manifest;
  const kept = kind === "CustomResourceDefinition" || (keepState && kind === "PersistentVolumeClaim");
  const { metadata } = manifest;
  const annotations = { ...metadata.annotations, "helm.sh/resource-policy": "keep" };
  const object = kept ? { ...manifest, metadata: { ...metadata, annotations } } : manifest;
  let text = stringify(object, { aliasDuplicateObjects: false, lineWidth: 0 }).replaceAll("{{", '{{ "{{" }}');
  for (const [key, mark] of marks) {
    const whole = new RegExp(`(^\\s*(?:- )?[\\w.-]+: |^\\s*- )${mark}$`, "gm");
    const quoted = typeof mark === "string" ? " | quote" : "";
    text = text.replace(whole, `$1{{ .Values.${key}${quoted} }}`).replaceAll(String(mark), `{{ .Values.${key} }}`);
  }
  text = text.replaceAll(NAMESPACE_MARK, "{{ .Release.Namespace }}");
  const condition = {
    CustomResourceDefinition: "crds",
    NetworkPolicy: "networkPolicy",
    ServiceMonitor: "serviceMonitor",
  }[kind];
  return condition === undefined ? text : `{{- if .Values.${condition} }}\n${text}{{- end }}\n`;
}

function pick<T extends object, K extends keyof T>(from: T, keys: readonly K[]): Pick<T, K> {
  return Object.fromEntries(keys.map((key) => [key, from[key]])) as Pick<T, K>;
}

function descriptionOf(key: Key): string {
  return (configurationSchema.properties as unknown as Record<Key, { description: string }>)[key].description;
}
