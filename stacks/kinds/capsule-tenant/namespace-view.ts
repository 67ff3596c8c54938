import type { NamespaceView } from "../../contract/index";
import { DEFAULT_USER_GROUP, TENANT_LABEL } from "./labels";

/** A Tenant's owner lists its namespaces. */
export const capsuleNamespaceView: NamespaceView = {
  label: TENANT_LABEL,
  userGroups: [DEFAULT_USER_GROUP],
  ownersOf({ spec }) {
    const { kind, name } = (spec as { owner?: { kind?: unknown; name?: unknown } } | undefined)?.owner ?? {};
    return typeof kind === "string" && typeof name === "string" ? [`${kind}:${name}`] : [];
  },
  ownerKeysOf({ name, groups }) {
    const isServiceAccount = name.startsWith("system:serviceaccount:");
    return [
      `User:${name}`,
      ...(isServiceAccount ? [`ServiceAccount:${name}`] : []),
      ...groups.map((group) => `Group:${group}`),
    ];
  },
};
