import { Default } from "typebox/value";
import { TerminalError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { apiVersionsOf, convertObject, servedVersionOf } from "./convert";
import { type AnyKind, kindApiVersion, parseServed } from "./kind";
import type { KindObject } from "./object";
import type { ManifestDocument } from "./parse-manifests";
import { violatedRules } from "./rules";
import { innerSchema, PRESERVE, type StructuralNode } from "./schema-node";
import { structuralSchema } from "./structural";

/**
 * Parses an object from a file, which no API server has seen, as the API server would: with the defaults and by the rules of
 * the version that it is written in; then converted to the stored version.
 *
 * @throws TerminalError `Invalid` naming the field and what is allowed
 */
export async function parseDeclared(kind: AnyKind, manifest: LiveObject): Promise<KindObject> {
  const declared = await parseIn(writtenIn(kind, manifest.apiVersion), manifest);
  if (manifest.apiVersion === kindApiVersion(kind)) return declared;
  return parseIn(kind, await convertObject(kind, declared as unknown as LiveObject));
}

async function parseIn(kind: AnyKind, manifest: LiveObject): Promise<KindObject> {
  const { object, lost } = readIn(kind, manifest);
  if (lost.length > 0) throw new TerminalError("Invalid", lost.join("; "));
  const parsed = await parseServed(kind, object);
  const violated = await violatedRules(kind, object);
  if (violated.length > 0) throw new TerminalError("Invalid", violated.join("; "));
  return parsed;
}

/**
 * Reads an object of the cluster as an operator does once the kind's definition is installed: what is stored is not validated by
 * the version in which it is, and a field that the kind does not have is dropped.
 *
 * @returns also why the API server would refuse, or cut, the object when it is next written
 * @throws TerminalError `Invalid` where the operator would not take it
 */
export async function parseLive(kind: AnyKind, live: LiveObject): Promise<{ object: KindObject; refused: string[] }> {
  const written = readIn(writtenIn(kind, live.apiVersion), live);
  const stored = readIn(kind, await convertObject(kind, written.object));
  const object = await parseServed(kind, stored.object);
  return { object, refused: [...written.lost, ...stored.lost, ...(await violatedRules(kind, stored.object))] };
}

/** An object with the defaults of a version, and which of its fields that version does not have. */
function readIn(kind: AnyKind, manifest: LiveObject): { object: LiveObject; lost: string[] } {
  const schema = structuralSchema(kind.spec, "spec");
  if (manifest.spec === undefined) throw new TerminalError("Invalid", "spec: must be given");
  const lost: string[] = [];
  const spec = Default(kind.spec, known(schema, pruned(schema, manifest.spec), "spec", lost));
  return { object: { ...manifest, spec } as LiveObject, lost: lost.map((path) => `${path}: there is no such field`) };
}

const versions = new WeakMap<AnyKind, Map<string, AnyKind>>();

/** The kind as one of its versions has it; only the stored version has rules over the whole object. */
function writtenIn(kind: AnyKind, apiVersion: string): AnyKind {
  if (apiVersion === kindApiVersion(kind)) return kind;
  const known = versions.get(kind) ?? new Map<string, AnyKind>();
  versions.set(kind, known);
  const served = servedVersionOf(kind, apiVersion);
  const { validate: _, ...names } = kind;
  const written = known.get(apiVersion) ?? { ...names, version: served.version, spec: served.spec, capabilities: {} };
  known.set(apiVersion, written);
  return written;
}

/**
 * A document of a file without the fields that are null and may not be: the API server takes them for fields that are not
 * there. One of a version that the kind does not serve stays as it is.
 */
export function withoutNulls(kind: AnyKind, { spec, ...document }: ManifestDocument): ManifestDocument {
  if (spec === undefined || spec === null) return document;
  if (!apiVersionsOf(kind).includes(document.apiVersion)) return { ...document, spec };
  const schema = structuralSchema(writtenIn(kind, document.apiVersion).spec, "spec");
  return { ...document, spec: pruned(schema, spec) };
}

function pruned(schema: StructuralNode, value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => pruned(schema.items ?? {}, item));
  const kept = Object.entries(value).flatMap(([name, part]) => {
    const inner = innerSchema(schema, value, name);
    if (part === null && inner !== undefined && inner.nullable !== true) return [];
    return [[name, pruned(inner ?? {}, part)] as const];
  });
  return Object.fromEntries(kept);
}

/** A value without the fields that the API server would drop, as no schema has them. @param lost gets their paths */
function known(schema: StructuralNode, value: unknown, path: string, lost: string[]): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (schema.type !== (Array.isArray(value) ? "array" : "object")) return value; // anything may be there, or the type is wrong
  if (Array.isArray(value)) return value.map((item, at) => known(schema.items ?? {}, item, `${path}.${at}`, lost));
  const kept = Object.entries(value).flatMap(([name, part]) => {
    const inner = innerSchema(schema, value, name);
    if (inner !== undefined || schema[PRESERVE] === true)
      return [[name, known(inner ?? {}, part, `${path}.${name}`, lost)]];
    lost.push(`${path}.${name}`);
    return [];
  });
  return Object.fromEntries(kept);
}
