import { describe, expect, it } from "vitest";
import type { AdmissionWebhook, KindAdmission } from "../../../stacks/contract/admission";
import type { AnyKind } from "../../../stacks/contract/kind";
import { admissionRules, operatorRules } from "../../../stacks/contract/rbac";
import { kinds } from "../../../stacks/kinds/index";
import { tenant } from "../../../stacks/kinds/tenant/kind";

function kindWith(changes: Partial<AnyKind>): AnyKind {
  return { ...tenant, group: "g.example.com", plural: "things", owns: [], capabilities: {}, ...changes };
}

const rule = (group: string, resources: string[], verbs: string[], ...resourceNames: string[]) => ({
  ...{ apiGroups: [group], resources, verbs },
  ...(resourceNames.length > 0 && { resourceNames }),
});
const RBAC = "rbac.authorization.k8s.io";
const ADMISSION = "admissionregistration.k8s.io";
const POLICIES = [
  "validatingadmissionpolicies",
  "validatingadmissionpolicybindings",
  "validatingwebhookconfigurations",
];
const READ = ["get", "list", "watch"];

describe("the operator's rules", () => {
  it("are, for a kind that makes nothing in the cluster, to watch it, to mark it and to write its status", () => {
    expect(operatorRules([kindWith({})])).toEqual([
      rule("g.example.com", ["things"], [...READ, "patch"]),
      rule("g.example.com", ["things/status"], ["patch"]),
      rule("", ["namespaces"], ["get"], "kube-system"),
      rule("", ["namespaces"], READ),
      rule("kindstack.dev", ["plans"], ["list", "watch", "create", "patch", "delete", "propose"]),
      rule("kindstack.dev", ["approvals"], ["list", "watch", "delete"]),
      rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["get", "list"]),
      rule("events.k8s.io", ["events"], ["create", "patch"]),
      rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
      rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    ]);
  });

  it("let it do with the types that a kind owns what server-side apply, watches and deletion need", () => {
    const networking = { apiVersion: "networking.k8s.io/v1" };
    const owns = [
      { apiVersion: "v1", kind: "Namespace" },
      { ...networking, kind: "NetworkPolicy" },
      { ...networking, kind: "Ingress" },
    ];
    const verbs = [...READ, "create", "patch", "delete"];

    const rules = operatorRules([kindWith({ owns })]);

    expect(rules).toContainEqual(rule("", ["namespaces"], verbs));
    expect(rules).toContainEqual(rule("networking.k8s.io", ["networkpolicies", "ingresses"], verbs));
  });

  it("let it bind no roles but those that the two kinds of Tenants hand out", () => {
    const binding = operatorRules(kinds).filter(({ verbs }) => verbs.includes("bind") || verbs.includes("escalate"));

    expect(binding).toEqual([
      rule(RBAC, ["clusterroles"], ["bind"], "admin", "edit"),
      rule(RBAC, ["clusterroles"], ["bind"], "admin", "capsule-namespace-deleter"),
    ]);
  });

  it("let it apply what admission needs by name, and only watch the rest of these types", () => {
    const admission: KindAdmission = {
      watches: {},
      objects: () => [{ apiVersion: `${RBAC}/v1`, kind: "ClusterRole", metadata: { name: "role" } }],
      webhooks: () => [{ type: "mutating" } as AdmissionWebhook],
    };

    expect(admissionRules([kindWith({ capabilities: { admission } })], "its-role")).toEqual([
      rule(RBAC, ["clusterroles"], ["list", "watch"]),
      rule(RBAC, ["clusterroles"], ["create", "patch"], "role"),
      rule(ADMISSION, ["mutatingwebhookconfigurations", ...POLICIES], ["list", "watch"]),
      rule(ADMISSION, ["mutatingwebhookconfigurations"], ["create", "patch"], "things.g.example.com"),
      rule(ADMISSION, POLICIES, ["create", "patch"], "objects.kindstack.dev"),
      rule(RBAC, ["clusterroles"], ["get"], "its-role"),
    ]);
  });

  it("hold no wildcard and no right to Secrets", () => {
    for (const { apiGroups, resources, verbs } of [...operatorRules(kinds), ...admissionRules(kinds, "r")]) {
      expect([...apiGroups, ...resources, ...verbs]).not.toContain("*");
      expect(resources).not.toContain("secrets");
    }
  });
});
