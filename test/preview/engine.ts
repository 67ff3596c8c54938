import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect } from "vitest";
import { ProviderHost } from "../../providers/host/session";
import { providersOf } from "../../providers/index";
import type { KubernetesClient, LiveObject, Manifest } from "../../providers/kubernetes/client";
import { clusterOf } from "../../providers/kubernetes/cluster";
import { GoEngine } from "../../src/automation/go-engine";
import { openEngine } from "../../src/automation/workspace";
import { resolveBinary } from "../../src/toolchain/resolve";
import { type AnyKind, ownerOf, parseServed } from "../../stacks/contract/kind";
import { objectKey, stackName } from "../../stacks/contract/object";
import { runProgram } from "../../stacks/contract/run-program";

/** An engine with a state of its own. */
export async function openTestEngine(options: { previewsAtOnce?: number } = {}) {
  const directory = await mkdtemp(join(tmpdir(), "kindstack-previews-"));
  const stateUrl = pathToFileURL(join(directory, "state")).href;
  const processes = await openEngine({
    file: await resolveBinary("engine"),
    workDirectory: join(directory, "work"),
    backendUrl: stateUrl,
    protection: { passphrase: { value: "the-passphrase" }, keyService: undefined },
    environment: process.env,
    log: console,
  });
  return {
    directory,
    stateUrl,
    engine: new GoEngine({ processes, host: new ProviderHost(providersOf()), timeoutMs: 60_000, ...options }),
    async close() {
      await processes.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Does what the operator would: the object in the cluster, and an update of its stack. */
export async function makeObject(
  engine: Pick<GoEngine, "up">,
  client: KubernetesClient,
  kind: AnyKind,
  manifest: Manifest,
): Promise<LiveObject> {
  const { object } = await client.apply(manifest, { fieldManager: "kubectl" });
  const identity = await clusterOf(client);
  const parsed = await parseServed(kind, object);
  const seen = { owned: [], recorded: new Set<string>(), watched: [], ...(identity && { cluster: identity }) };
  const program = () => runProgram(kind, parsed, { owner: ownerOf(kind, object), ...seen });
  const result = await engine.up(stackName(kind, objectKey(object.metadata)), program);
  expect(result.failures).toEqual([]);
  return object;
}
