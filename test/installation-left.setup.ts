import { KubeConfig } from "@kubernetes/client-node";
import { afterAll, expect } from "vitest";
import { KubernetesClient } from "../providers/kubernetes/client";
import { parseConfiguration } from "../stacks/platform/parse-configuration";
import { missingPrerequisites } from "../stacks/platform/prerequisites";
import { controlPlane } from "./control-plane";

// Files use a control plane in turn, and a cluster has one installation: one that is left fails a later file.
afterAll(async () => {
  const config = new KubeConfig();
  config.loadFromFile(controlPlane().kubeconfig);
  const client = new KubernetesClient(config);
  const configuration = parseConfiguration({ namespace: "of-no-test", passphrase: "p", backendUrl: "s3://a" }, "1.2.3");
  try {
    const problems = await missingPrerequisites({ ...configuration, networkPolicy: false }, [], client);
    expect(problems.filter((problem) => problem.includes("one installation"))).toEqual([]);
  } finally {
    await client.close();
  }
});
