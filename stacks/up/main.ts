import "./supported-node";
import path from "node:path";
import { inspect } from "node:util";
import type { KubeConfig } from "@kubernetes/client-node";
import { RunError } from "@pulumi/pulumi/errors";
import { getProject, getStack } from "@pulumi/pulumi/metadata";
import { allConfig } from "@pulumi/pulumi/runtime/config";
import { ClassifiedError, TerminalError } from "../../providers/errors";
import { KubernetesClient } from "../../providers/kubernetes/client";
import { disconnectKubernetes, kubeconfigNamespace } from "../../providers/kubernetes/connection";
import { loadKubeconfig } from "../../providers/kubernetes/kubeconfig";
import type { AnyKind } from "../contract/kind";
import { requireManifests } from "../contract/manifests";
import { kinds as builtIn } from "../kinds/index";
import type { Configuration } from "../platform/configuration";
import { requireTables, withLoadedKinds } from "../platform/kinds";
import { parseConfiguration } from "../platform/parse-configuration";
import { missingPrerequisites } from "../platform/prerequisites";
import { declaredObjects } from "./objects";
import { ROOT, version } from "./package";
import { registerObjects } from "./register";

/** What `pulumi up` runs in the project's root: the installation, or objects without it, or both. */
async function main(): Promise<void> {
  const parsed = parseConfiguration(ownConfiguration(), version);
  const { configuration, kinds } = withLoadedKinds(parsed, ROOT);
  if (!configuration.install && configuration.manifests.length === 0) {
    throw new TerminalError(
      "Misconfigured",
      "nothing to do: set kindstack:install to true, or kindstack:manifests to files or folders",
    );
  }
  const stack = getStack();
  if (configuration.install) {
    // Only now: the Kubernetes SDK is large, and not needed to run objects.
    const { installPlatform } = await import("../platform/program.js");
    requireTables(configuration, kinds);
    await refuseWhatCannotWork(configuration, kinds);
    await installPlatform(configuration, kinds);
  }
  const manifests = await requireManifests(configuration.manifests.map((file) => path.resolve(ROOT, file)));
  const known = [...new Set([...builtIn, ...kinds])];
  try {
    await registerObjects(await declaredObjects(manifests, known, stack, kubeconfigNamespace()), stack);
  } finally {
    await disconnectKubernetes();
  }
}

async function refuseWhatCannotWork(configuration: Configuration, kinds: readonly AnyKind[]): Promise<void> {
  const client = new KubernetesClient(providerKubeconfig());
  try {
    const missing = await missingPrerequisites(configuration, kinds, client);
    if (missing.length > 0) throw new TerminalError("MissingPrerequisite", missing.join("\n"));
  } finally {
    await client.close();
  }
}

/** The kubeconfig that the Kubernetes provider takes: the one that its configuration names, or the environment's. */
function providerKubeconfig(): KubeConfig {
  const { "kubernetes:kubeconfig": source, "kubernetes:context": context } = allConfig();
  const config = loadKubeconfig(source);
  if (context !== undefined) config.setCurrentContext(context);
  return config;
}

function ownConfiguration(): Record<string, string> {
  const prefix = `${getProject()}:`;
  return Object.fromEntries(
    Object.entries(allConfig())
      .filter(([key]) => key.startsWith(prefix))
      .map(([key, value]) => [key.slice(prefix.length), value]),
  );
}

/** A mistake of the user's is shown as a sentence, without the stack that Pulumi adds to what it does not know. */
async function mainForPulumi(): Promise<void> {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof ClassifiedError)) throw error;
    const { message } = error;
    // Pulumi hangs its whole state on errors and then prints them for its trace: half a minute of useless output.
    throw Object.defineProperty(new RunError(message), inspect.custom, { value: () => message });
  }
}

export = mainForPulumi;
