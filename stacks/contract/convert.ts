import { TerminalError } from "../../providers/errors";
import type { Manifest } from "../../providers/kubernetes/client";
import { type AnyKind, type CalledCapabilities, kindApiVersion } from "./kind";

/**
 * Converts an object to another version of its kind's API, through the stored one.
 *
 * @param apiVersion with the kind's group; by default that of the stored version
 * @throws TerminalError `Invalid` for a version that the kind does not serve; what the kind's conversion throws
 */
export async function convertObject<T extends Manifest>(
  kind: AnyKind,
  object: T,
  apiVersion = kindApiVersion(kind),
): Promise<T> {
  if (object.apiVersion === apiVersion) return object;
  const versionOf = (name: string) => (name === kindApiVersion(kind) ? undefined : servedVersionOf(kind, name));
  const [from, to] = [versionOf(object.apiVersion), versionOf(apiVersion)];
  const { annotations: given, ...metadata } = object.metadata;
  const parts = { spec: object.spec ?? {}, annotations: given ?? {} };
  const stored = (await from?.toStored(parts)) ?? parts;
  const { spec, annotations } = (await to?.fromStored(stored)) ?? stored;
  const isAnnotated = given !== undefined || Object.keys(annotations).length > 0;
  return { ...object, apiVersion, metadata: { ...metadata, ...(isAnnotated && { annotations }) }, spec };
}

/** All versions in which an object of a kind can be written, as `apiVersion`; the stored one first. */
export function apiVersionsOf(kind: AnyKind): string[] {
  const served = kind.capabilities.versions ?? [];
  return [kind.version, ...served.map(({ version }) => version)].map((version) => `${kind.group}/${version}`);
}

/** A version that is served besides the stored one. */
export function servedVersionOf(
  kind: AnyKind,
  apiVersion: string,
): NonNullable<CalledCapabilities["versions"]>[number] {
  const served = kind.capabilities.versions?.find(({ version }) => `${kind.group}/${version}` === apiVersion);
  if (served !== undefined) return served;
  const all = apiVersionsOf(kind);
  throw new TerminalError("Invalid", `apiVersion: ${apiVersion} is not served; it must be ${all.join(" or ")}`);
}
