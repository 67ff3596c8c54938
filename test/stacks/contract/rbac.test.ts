import { describe, expect, it } from "vitest";
import type { AdmissionWebhook, KindAdmission } from "../../../stacks/contract/admission";
import type { AnyKind } from "../../../stacks/contract/kind";
import { admissionRules, operatorRules } from "../../../stacks/contract/rbac";
import { kinds } from "../../../stacks/kinds/index";
import { tenant } from "../../../stacks/kinds/tenant/kind";

function kindWith(changes: Partial<AnyKind>): AnyKind {
  return { ...tenant, group: "g.example.com", plural: "things", owns: [], capabilities: {}, ...changes };
}

describe("the operator's rules", () => {
  it("are, for a kind that makes nothing in the cluster, to watch it, to mark it and to write its status", () => {
    expect(operatorRules([kindWith({})])).toEqual([
      { apiGroups: ["g.example.com"], resources: ["things"], verbs: ["get", "list", "watch", "patch"] },
      { apiGroups: ["g.example.com"], resources: ["things/status"], verbs: ["patch"] },
      { apiGroups: [""], resources: ["namespaces"], resourceNames: ["kube-system"], verbs: ["get"] },
      { apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"] },
      {
        apiGroups: ["kindstack.dev"],
        resources: ["plans"],
        verbs: ["list", "watch", "create", "patch", "delete", "propose"],
      },
      { apiGroups: ["kindstack.dev"], resources: ["approvals"], verbs: ["list", "watch", "delete"] },
      {
        apiGroups: ["apiextensions.k8s.io"],
        resources: ["customresourcedefinitions"],
        verbs: ["get", "list"],
      },
      { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create", "patch"] },
      { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
      { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
    ]);
  });

  it("let it do with the types that a kind owns what server-side apply, watches and deletion need", () => {
    const owns = [
      { apiVersion: "v1", kind: "Namespace" },
      { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy" },
      { apiVersion: "networking.k8s.io/v1", kind: "Ingress" },
    ];
    const verbs = ["get", "list", "watch", "create", "patch", "delete"];

    const rules = operatorRules([kindWith({ owns })]);

    expect(rules).toContainEqual({ apiGroups: [""], resources: ["namespaces"], verbs });
    expect(rules).toContainEqual({
      apiGroups: ["networking.k8s.io"],
      resources: ["networkpolicies", "ingresses"],
      verbs,
    });
  });

  it("let it bind no roles but those that the two kinds of Tenants hand out", () => {
    const binding = operatorRules(kinds).filter(({ verbs }) => verbs.includes("bind") || verbs.includes("escalate"));

    expect(binding).toEqual([
      {
        apiGroups: ["rbac.authorization.k8s.io"],
        resources: ["clusterroles"],
        resourceNames: ["admin", "edit"],
        verbs: ["bind"],
      },
      {
        apiGroups: ["rbac.authorization.k8s.io"],
        resources: ["clusterroles"],
        resourceNames: ["admin", "capsule-namespace-deleter"],
        verbs: ["bind"],
      },
    ]);
  });

  it("let it apply what admission needs by name, and only watch the rest of these types", () => {
    const admission: KindAdmission = {
      watches: {},
      objects: () => [{ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: "role" } }],
      webhooks: () => [{ type: "mutating" } as AdmissionWebhook],
    };

    expect(admissionRules([kindWith({ capabilities: { admission } })], "its-role")).toEqual([
      { apiGroups: ["rbac.authorization.k8s.io"], resources: ["clusterroles"], verbs: ["list", "watch"] },
      {
        apiGroups: ["rbac.authorization.k8s.io"],
        resources: ["clusterroles"],
        resourceNames: ["role"],
        verbs: ["create", "patch"],
      },
      {
        apiGroups: ["admissionregistration.k8s.io"],
        resources: [
          "mutatingwebhookconfigurations",
          "validatingadmissionpolicies",
          "validatingadmissionpolicybindings",
          "validatingwebhookconfigurations",
        ],
        verbs: ["list", "watch"],
      },
      {
        apiGroups: ["admissionregistration.k8s.io"],
        resources: ["mutatingwebhookconfigurations"],
        resourceNames: ["things.g.example.com"],
        verbs: ["create", "patch"],
      },
      {
        apiGroups: ["admissionregistration.k8s.io"],
        resources: [
          "validatingadmissionpolicies",
          "validatingadmissionpolicybindings",
          "validatingwebhookconfigurations",
        ],
        resourceNames: ["objects.kindstack.dev"],
        verbs: ["create", "patch"],
      },
      {
        apiGroups: ["rbac.authorization.k8s.io"],
        resources: ["clusterroles"],
        resourceNames: ["its-role"],
        verbs: ["get"],
      },
    ]);
  });

  it("hold no wildcard and no right to Secrets", () => {
    for (const { apiGroups, resources, verbs } of [...operatorRules(kinds), ...admissionRules(kinds, "r")]) {
      expect([...apiGroups, ...resources, ...verbs]).not.toContain("*");
      expect(resources).not.toContain("secrets");
    }
  });
});
