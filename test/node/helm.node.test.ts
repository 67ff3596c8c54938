import path from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, it } from "vitest";
import { areReady, get, KINDS, kindstack, kubectl, NAMESPACE, node, pods, prepareInstallation } from "./installation";
import { reportTimes, type StepTime, timed } from "./times";

/* The Helm chart, in a namespace that enforces the restricted Pod security standard. */

const chart = path.join(node.directory, "chart");

const times: StepTime[] = [];

beforeAll(async () => {
  const values = await timed(times, "namespace, Secrets, values.yaml", prepareInstallation);
  await kubectl(`label namespace ${NAMESPACE} pod-security.kubernetes.io/enforce=restricted`);
  await timed(times, "install --chart", () => kindstack(["install", "--chart", chart, "--values", values]));
});
afterAll(async () => {
  await kubectl(`delete ${KINDS.join(",")} --all -A`);
  await kubectl(`delete namespace ${NAMESPACE} --ignore-not-found`);
  await kubectl("delete crd -l app.kubernetes.io/part-of=kindstack --ignore-not-found");
});

async function helm(...args: string[]): Promise<string> {
  const { stdout } = await execa(node.helm, [...args, "--namespace", NAMESPACE], {
    env: { KUBECONFIG: node.kubeconfig, HELM_CACHE_HOME: path.join(node.directory, "helm") },
  });
  return stdout;
}

it("is installed, and Ready", async () => {
  await timed(times, "helm install --wait", () => helm("install", "kindstack", chart, "--wait", "--timeout", "180s"));
  await timed(times, "the first object: kubectl apply, kubectl wait", async () => {
    await kubectl(["apply", "-f", path.resolve(__dirname, "../../stacks/kinds/tenant/sample.yaml")]);
    await areReady(["tenants.multitenancy.codereliant.io/tenant-sample"]);
  });
  reportTimes("With Helm", times);
});

it("is upgraded, with other values", async () => {
  const set = ["--set", "logLevel=debug,replicas=2", "--set-json", 'tolerations=[{"key":"infra","operator":"Exists"}]'];
  await helm("upgrade", "kindstack", chart, ...set, "--wait", "--timeout", "180s");

  const { spec } = await get<{ spec: { replicas: number; template: { spec: { tolerations: object[] } } } }>(
    `deployment kindstack -n ${NAMESPACE}`,
  );
  expect(spec).toMatchObject({ replicas: 2, template: { spec: { tolerations: [{ key: "infra" }] } } });
  expect(await pods()).toHaveLength(2);
});

it("is uninstalled, without its CRDs", async () => {
  await kubectl(`delete ${KINDS.join(",")} --all -A`);
  await helm("uninstall", "kindstack", "--wait");

  expect(
    await kubectl(
      `get deployments,services,serviceaccounts,roles -n ${NAMESPACE} -o name -l app.kubernetes.io/part-of=kindstack`,
    ),
  ).toBe("");
  expect(await kubectl("get clusterroles -o name -l app.kubernetes.io/part-of=kindstack")).toBe("");
  expect((await kubectl("get crds -o name")).split("\n").filter((name) => name.includes("codereliant"))).toHaveLength(
    1,
  );
});
