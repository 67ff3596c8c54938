import path from "node:path";
import { packageRoot } from "../package";
import { usesAutomationApi } from "../toolchain/engine";
import type { DevCluster } from "./cluster";
import { answersOk } from "./health";
import type { Component } from "./supervisor";

interface OperatorOptions {
  /** Words for `--kinds`, such as `portableWords`; by default the built-in ones. */
  kinds?: readonly string[];
  watch?: boolean;
  /** More words for `run`. */
  args?: readonly string[];
}

/** Of the C library. */
const AS_IN_THE_IMAGE = { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "131072" };

/** The operator as one more process of the cluster: the command line's own `run`, with the cluster's environment. */
export function operator(
  { env, operatorPort: port }: DevCluster,
  engine: string,
  { kinds = [], watch = false, args = [] }: OperatorOptions,
): Component {
  return {
    name: "operator",
    command: process.execPath,
    args: [
      ...[path.join(packageRoot, "dist/src/cli/main.js"), "run", "--install-crds"],
      ...["--http-port", String(port), "--admission-port", "0"],
      ...kinds.flatMap((word) => ["--kinds", word]),
      ...(watch ? ["--watch"] : []),
      ...args,
    ],
    env: { ...env, ...AS_IN_THE_IMAGE, ...(!usesAutomationApi() && { KINDSTACK_ENGINE: engine }) },
    port,
    tier: 4,
    stopSeconds: 40, // running updates finish first
    isHealthy: () => answersOk(`http://127.0.0.1:${port}/readyz`),
  };
}
