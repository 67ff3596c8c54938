import type { ObjectType } from "../../providers/kubernetes/client";
import { type AnyKind, kindName } from "./kind";

/**
 * The kind that a person means by `Tenant`, `tenant`, `tenants`, a short name, or any of them with the group or, as for
 * kubectl, what the group begins with: `tenants.multitenancy.codereliant.io`, `tenant.multitenancy`.
 */
export function findKind(kinds: readonly AnyKind[], name: string): AnyKind {
  const named = kindsNamed(kinds, name);
  const [kind] = named;
  if (kind === undefined) {
    throw new RangeError(`there is no kind ${name}; it can be one of ${kinds.map(kindName).join(", ")}`);
  }
  if (named.length > 1) throw new RangeError(`${name} may be ${named.map(kindName).join(" or ")}: name the group`);
  return kind;
}

/** All that a person may mean, see {@link findKind}. */
export function kindsNamed(kinds: readonly AnyKind[], name: string): AnyKind[] {
  const [word = "", ...parts] = name.toLowerCase().split(".");
  const group = parts.join(".");
  const alike = kinds.filter(
    (kind) =>
      [kind.kind, kind.plural, kind.singular, ...(kind.shortNames ?? [])].some((own) => own.toLowerCase() === word) &&
      kind.group.startsWith(group),
  );
  const exact = alike.filter((kind) => kind.group === group);
  return exact.length > 0 ? exact : alike;
}

/** The kind of a manifest, in whatever version; `undefined` when it is none of these. */
export function kindOf(kinds: readonly AnyKind[], { apiVersion, kind }: ObjectType): AnyKind | undefined {
  return kinds.find((candidate) => candidate.kind === kind && candidate.group === apiVersion.split("/")[0]);
}
