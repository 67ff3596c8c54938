import { execFile, spawnSync } from "node:child_process";
import { controlPlane } from "../control-plane";

/** Why tests of what a person sees in a terminal are skipped; `undefined` when they need not be. */
export const noKubectl =
  spawnSync("kubectl", ["version", "--client"]).status === 0 ? undefined : "kubectl is not on the PATH";

/** Runs kubectl; fails never, so that what it says when it refuses can be looked at. */
export function kubectl(args: string[], stdin?: string): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const child = execFile(
      "kubectl",
      args,
      { env: { ...process.env, KUBECONFIG: controlPlane().kubeconfig } },
      (error, stdout, stderr) => resolve({ exitCode: error === null ? 0 : 1, stdout, stderr }),
    );
    child.stdin?.end(stdin);
  });
}
