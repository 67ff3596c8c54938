import { KubernetesObject } from "../../../providers/kubernetes/index";
import { type KindObject, objectId, type ProgramContext } from "../../contract/index";
import type { TenantSpec } from "./schema";

/**
 * For each namespace: itself, and what the tenant's admins and users may do in it. A RoleBinding that exists is updated
 * whatever comes of its namespace: a group that is dismissed loses its rights also where the namespace is ending, or
 * refuses its annotations.
 */
export function tenantProgram({ spec }: KindObject<TenantSpec>, { owner, cached = [] }: ProgramContext): void {
  const existing = new Set(cached.map(objectId));
  for (const name of spec.namespaces) {
    const namespace = new KubernetesObject(`namespace/${name}`, {
      owner,
      manifest: {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name, annotations: { adminEmail: spec.adminEmail, "managed-by": "tenant-operator" } },
      },
    });
    for (const [role, groups] of [
      ["admin", spec.adminGroups ?? []],
      ["edit", spec.userGroups ?? []],
    ] as const) {
      if (groups.length === 0) continue;
      const manifest = {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "RoleBinding",
        metadata: { name: `${name}-${role}-rb`, namespace: name },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
        subjects: groups.map((group) => ({ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: group })),
      };
      const dependsOn = existing.has(objectId(manifest)) ? [] : [namespace];
      new KubernetesObject(
        `rolebinding/${name}/${role}`,
        { owner, manifest, replaceOnChanges: ["roleRef"] },
        { dependsOn },
      );
    }
  }
}
