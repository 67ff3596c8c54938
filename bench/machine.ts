import os from "node:os";
import { packageVersion } from "../src/package";
import { tools } from "../src/toolchain/tools";
import type { Results } from "./results";

/** On what, and with what, the benches run. */
export function describeMachine(): Pick<Results, "machine" | "versions"> {
  const cpus = os.cpus();
  return {
    machine: {
      cpu: cpus[0]?.model.trim() ?? "unknown",
      cores: os.availableParallelism(),
      memoryGiB: Math.round(os.totalmem() / 2 ** 30),
      system: `${os.type()} ${os.release().split("-")[0]}`,
    },
    versions: {
      Kindstack: packageVersion,
      "Node.js": process.versions.node,
      Pulumi: tools.pulumi.version,
      Kubernetes: tools["kube-apiserver"].version,
    },
  };
}
