import { inject } from "vitest";

declare module "vitest" {
  export interface ProvidedContext {
    controlPlanes: readonly ControlPlane[];
  }
}

/** A control plane and a database with no operator in them. */
export interface ControlPlane {
  kubeconfig: string;
  env: Record<string, string>;
}

/** The control plane of this test file: no other file uses it at the same time. */
export function controlPlane(): ControlPlane {
  const worker = Number(process.env.VITEST_POOL_ID ?? 1);
  const own = inject("controlPlanes")[worker - 1];
  if (own === undefined) throw new Error(`no control plane was started for worker ${worker}`);
  return own;
}
