import { isDeepStrictEqual } from "node:util";
import Type from "typebox";
import { stringify } from "yaml";
import { TerminalError } from "../../providers/errors";
import type { Manifest } from "../../providers/kubernetes/client";
import { authorPolicies } from "../contract/author-policy";
import { installationPolicy } from "../contract/installation";
import { installedDefinitions } from "../contract/installed-definitions";
import { type AnyKind, kindName } from "../contract/kind";
import { kindAdmissionRules, kindRules, OPERATOR_RULES, objectAdmissionRules } from "../contract/rbac";
import { DELETE_YOUNGER } from "../kinds/capsule-tenant/labels";
import { userRules } from "./access";
import { alertingRules } from "./alerts";
import { type Configuration, configurationSchema, keySchemas } from "./configuration";
import { dashboard } from "./dashboard";
import { DEFAULT_NAMESPACE, NAME } from "./labels";
import { needsAdmission } from "./manifests";

type Key = keyof Configuration;

/** Keys of `pulumi up`, and what the release decides. */
const NO_VALUES: readonly Key[] = ["install", "manifests", "namespace"];

/** Keys that make Secrets, and where what they say belongs instead. */
const IN_SECRETS: Partial<Record<Key, string>> = {
  passphrase: "put it under the key passphrase into stateSecret",
  backendUrl: "put it under the key backendUrl into stateSecret and set backendFromSecret",
  ...Object.fromEntries(
    (["postgresPassword", "postgresHost", "postgresDatabase", "postgresUser", "postgresSslMode"] as const).map(
      (key) => [
        key,
        "put PSQL_HOST, PSQL_DBNAME, PSQL_USER and PSQL_PASSWORD into postgresSecret, in place of postgresHost and its keys",
      ],
    ),
  ),
};

const VALUES = ([...keySchemas.keys()] as Key[]).filter((key) => !NO_VALUES.includes(key) && !(key in IN_SECRETS));

/**
 * The files of a Helm chart beside its templates, which `chart/templates` has: the keys of the configuration as values, and
 * what the templates install for each kind.
 */
export function chartFiles(
  configuration: Configuration,
  kinds: readonly AnyKind[],
  version: string,
): Record<string, string> {
  // A chart with a password in it would be copied around with it.
  const secret = [...keySchemas.keys()].find((key) => keySchemas.get(key)?.secret && key in configuration) as Key;
  if (secret !== undefined) {
    throw new TerminalError("Misconfigured", `kindstack:${secret}: a chart contains no Secrets; ${IN_SECRETS[secret]}`);
  }
  const common = installedDefinitions([]);
  return {
    "Chart.yaml": stringify({
      apiVersion: "v2",
      name: "kindstack",
      description: "A Kubernetes operator in which a custom resource is a Pulumi stack",
      type: "application",
      version,
      appVersion: version,
    }),
    "values.yaml": VALUES.map((key) => valueWithComment(key, configuration[key])).join("\n"),
    "values.schema.json": `${JSON.stringify(valuesSchema(), null, 2)}\n`,
    "files/all-kinds.yaml": stringify({
      definitions: common,
      authorPolicies: [],
      installation: installationPolicy({ name: NAME, namespace: DEFAULT_NAMESPACE }),
      rules: { operator: OPERATOR_RULES, admission: objectAdmissionRules() },
    }),
    ...Object.fromEntries(kinds.map((kind) => [`files/kinds/${kindName(kind)}.yaml`, kindFile(kind, kinds, common)])),
    "files/alerts.yaml": stringify(alertingRules()),
    "files/dashboard.json": JSON.stringify(dashboard()),
  };
}

function valueWithComment(key: Key, value: unknown): string {
  const comment = `# ${keySchemas.get(key)?.description}\n`;
  return value === undefined ? `${comment}# ${key}:\n` : `${comment}${stringify({ [key]: value })}`;
}

/** Of the values. Helm gives each chart that another one depends on `global`, and reads whether it is `enabled`. */
function valuesSchema(): object {
  const schemas = VALUES.map((key) => [key, configurationSchema.properties[key]] as const);
  const { required, ...schema } = Type.Object(
    {
      ...Object.fromEntries(schemas),
      global: Type.Optional(Type.Object({})),
      enabled: Type.Optional(Type.Boolean({ description: "for the condition of a chart that depends on this one" })),
    },
    { additionalProperties: false },
  );
  return schema;
}

function kindFile(kind: AnyKind, kinds: readonly AnyKind[], common: readonly Manifest[]): string {
  const isCommon = (manifest: Manifest) => common.some((one) => isDeepStrictEqual(one, manifest));
  return stringify(
    {
      admission: needsAdmission(kind),
      definitions: installedDefinitions([kind]).filter((manifest) => !isCommon(manifest)),
      authorPolicies: authorPolicies([kind]),
      rules: {
        operator: kindRules(kind, kinds),
        deleteYounger: kind.capabilities.optionalPermissions?.[DELETE_YOUNGER] ?? [],
        admission: kindAdmissionRules(kind, kinds),
        ...userRules(kind),
      },
    },
    { aliasDuplicateObjects: false, lineWidth: 0 },
  );
}
