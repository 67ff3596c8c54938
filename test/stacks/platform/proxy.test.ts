import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
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
describe("the proxy in an installation", () => {
  it("is not there unless it is asked for", async () => {
    const { names } = await install({});

    expect(names.filter((name) => name.includes("kindstack-proxy"))).toEqual([]);
  });

  it("is a Deployment with an identity of its own, and what it is reached by, with names and groups as configured", async () => {
    const values = { proxy: "true", proxyNames: '["kube.example.com"]', proxyUserGroups: '["staff","guests"]' };
    const { names, inputsOf } = await install(values);

    const proxy = names.filter((name) => name.endsWith("/kindstack-proxy")).sort();
    const manifests = Object.fromEntries(proxy.map((name) => [name, inputsOf(name)]));
    await expect(stringify(manifests)).toMatchFileSnapshot("variants/proxy.yaml");
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

  it("serves a certificate that is configured, and may then read no Secret", async () => {
    const { inputsOf, names } = await install({ proxy: "true", proxySecret: "own" });
    const { spec } = inputsOf("Deployment/kindstack-system/kindstack-proxy") as {
      spec: { template: { spec: { volumes: unknown[]; securityContext: object; containers: { args: string[] }[] } } };
    };
    const pod = spec.template.spec;
    expect(pod.containers[0]?.args.join(" ")).toContain(
      "--tls-cert-file /etc/kindstack-proxy/tls.crt --tls-key-file /etc/kindstack-proxy/tls.key --user-group",
    );
    expect(pod.volumes).toEqual([{ name: "certificate", secret: { secretName: "own", defaultMode: 0o440 } }]);
    expect(pod.securityContext).toMatchObject({ fsGroup: 65532 });
    expect(names).not.toContain("Role/kindstack-system/kindstack-proxy");
  });
});
