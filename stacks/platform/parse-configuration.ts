import { Compile } from "typebox/compile";
import Value from "typebox/value";
import { TerminalError } from "../../providers/errors";
import { hasPassword } from "../../providers/passwords";
import { type Configuration, configurationSchema, type KeySchema, keySchemas, usesVolume } from "./configuration";

const validator = Compile(configurationSchema);

/**
 * Parses the configuration from texts, as Pulumi hands them out: lists and maps are JSON; a list of one may be that one.
 *
 * @throws TerminalError `Misconfigured` naming each wrong key, its value (unless it is a secret) and what is allowed
 */
export function parseConfiguration(values: Readonly<Record<string, string>>, version: string): Configuration {
  const problems: string[] = [];
  const given: Record<string, unknown> = { image: `kindstack:${version}` };
  for (const [key, text] of Object.entries(values)) {
    const schema = keySchemas.get(key);
    if (schema !== undefined) given[key] = parseText(schema, text);
    else problems.push(`${key} is not a key of the configuration: ${[...keySchemas.keys()].join(", ")}`);
  }
  const parsed = Value.Default(configurationSchema, given) as Configuration;
  const refused = new Map<string, string>();
  for (const error of validator.Errors(parsed)) {
    const key = error.instancePath.split("/")[1] ?? "";
    const shown = keySchemas.get(key)?.secret ? "its value" : JSON.stringify(values[key]);
    const allowed =
      error.keyword === "enum" ? `must be one of ${error.params.allowedValues.join(", ")}` : error.message;
    refused.set(key, refused.get(key) ?? `${key}: ${shown} ${allowed}`);
  }
  problems.push(...refused.values());
  if (problems.length === 0) problems.push(...contradictions(parsed));
  if (problems.length > 0)
    throw new TerminalError("Misconfigured", problems.map((text) => `kindstack:${text}`).join("\n"));
  return parsed;
}

function parseText({ type }: KeySchema, text: string): unknown {
  if (type === "boolean" && /^(true|false)$/.test(text)) return text === "true";
  if (type === "integer" && /^\d+$/.test(text)) return Number(text);
  if (type !== "array" && type !== "object") return text;
  try {
    const value: unknown = JSON.parse(text);
    return type === "array" ? [value].flat() : value;
  } catch {
    return type === "array" ? [text] : text;
  }
}

/** What the schema cannot say: keys that need or exclude each other. */
function contradictions(parsed: Configuration): string[] {
  const { backendUrl, backendFromSecret, passphrase, postgresHost, replicas } = parsed;
  const holdsPassword = backendUrl !== undefined && hasPassword(backendUrl);
  const checks: [refused: boolean, problem: string][] = [
    [backendUrl !== undefined && backendFromSecret, "backendFromSecret: true and backendUrl exclude each other"],
    [
      backendFromSecret && passphrase !== undefined,
      "backendFromSecret: true needs an existing Secret, but passphrase creates it; set backendUrl instead",
    ],
    [
      holdsPassword && passphrase === undefined,
      "backendUrl: its value has a password; put it under the key backendUrl into stateSecret and set backendFromSecret, " +
        "or also set passphrase, to create the Secret from both",
    ],
    [
      replicas > 1 && usesVolume(parsed),
      `replicas: ${replicas} need a backendUrl of postgres://, s3://, gs:// or azblob://; a volume is for one`,
    ],
    ...(["postgresDatabase", "postgresUser", "postgresPassword"] as const).map((key): [boolean, string] => [
      (postgresHost === undefined) !== (parsed[key] === undefined),
      `${key}: ${postgresHost === undefined ? "needs postgresHost" : "must be given with postgresHost"}`,
    ]),
  ];
  return checks.filter(([refused]) => refused).map(([, problem]) => problem);
}
