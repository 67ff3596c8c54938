import { describe, expect, it } from "vitest";
import { capsuleTenant } from "../../../stacks/kinds/capsule-tenant/kind";
import { parseConfiguration } from "../../../stacks/platform/parse-configuration";
import { installPlatform } from "../../../stacks/platform/program";
import { registrationsOf } from "./mocked-engine";

const install = async (values: Record<string, string>) => {
  const program = () => installPlatform(parseConfiguration(values, "1.2.3"), [capsuleTenant]);
  const registrations = await registrationsOf(program);
  const inputs = new Map(registrations.map((registration) => [registration.name, registration.inputs]));
  return { names: [...inputs.keys()], inputsOf: (name: string) => inputs.get(name) as Record<string, unknown> };
};
const ofProxy = ({ names }: { names: string[] }) => names.filter((name) => name.endsWith("/kindstack-proxy")).sort();

describe("the proxy in an installation", () => {
  it("is not there unless it is asked for", async () => {
    expect(ofProxy(await install({}))).toEqual([]);
  });

  it("is a Deployment with an identity of its own, and what it is reached by", async () => {
    expect(ofProxy(await install({ proxy: "true" }))).toEqual([
      "ClusterRole/kindstack-proxy",
      "ClusterRoleBinding/kindstack-proxy",
      "Deployment/kindstack-system/kindstack-proxy",
      "NetworkPolicy/kindstack-system/kindstack-proxy",
      "PodDisruptionBudget/kindstack-system/kindstack-proxy",
      "Role/kindstack-system/kindstack-proxy",
      "RoleBinding/kindstack-system/kindstack-proxy",
      "RoleBinding/kube-system/kindstack-proxy",
      "Service/kindstack-system/kindstack-proxy",
      "ServiceAccount/kindstack-system/kindstack-proxy",
    ]);
  });

  it("may do what it is told, and reads no Secret but that of its certificate", async () => {
    const { inputsOf } = await install({ proxy: "true", namespace: "tools" });
    expect(inputsOf("Role/tools/kindstack-proxy").rules).toEqual([
      { apiGroups: [""], resources: ["secrets"], resourceNames: ["kindstack-proxy-tls"], verbs: ["get", "patch"] },
      { apiGroups: [""], resources: ["secrets"], verbs: ["create"] },
    ]);
    const { rules } = inputsOf("ClusterRole/kindstack-proxy.tools") as {
      rules: { resources: string[]; verbs: string[] }[];
    };
    expect(rules.flatMap(({ verbs }) => verbs).filter((verb) => /\*|update|patch|delete|get/.test(verb))).toEqual([]);
    expect(rules.flatMap(({ resources }) => resources)).not.toContain("secrets");
  });

  it("runs with the names and groups that are configured, and by the restricted standard", async () => {
    const values = { proxy: "true", proxyNames: '["kube.example.com"]', proxyUserGroups: '["staff","guests"]' };
    const { spec } = (await install(values)).inputsOf("Deployment/kindstack-system/kindstack-proxy") as {
      spec: { template: { spec: { serviceAccountName: string; containers: { args: string[]; image: string }[] } } };
    };
    const [container] = spec.template.spec.containers;
    expect(container?.args).toEqual([
      ...["proxy", "--port", "9443", "--http-port", "8081", "--metrics-port", "8443"],
      ...[
        "--tls-secret",
        "kindstack-system/kindstack-proxy-tls",
        "--tls-names",
        "kindstack-proxy.kindstack-system.svc",
      ],
      ...["kindstack-proxy.kindstack-system.svc.cluster.local", "kube.example.com"],
      ...["--user-group", "staff", "guests", "--refuse-group", "system:masters", "--max-connections", "1000"],
    ]);
    expect(container).toMatchObject({
      image: "kindstack:1.2.3",
      securityContext: {
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
        readOnlyRootFilesystem: true,
      },
    });
    expect(spec.template.spec).toMatchObject({
      serviceAccountName: "kindstack-proxy",
      securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
    });
  });
});
