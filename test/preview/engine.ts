import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { expect } from "vitest";
import type { KubernetesClient, LiveObject, Manifest } from "../../providers/kubernetes/client";
import { clusterOf } from "../../providers/kubernetes/cluster";
import type { GoEngine } from "../../src/automation/go-engine";
import { type InspectionServerOptions, startInspectionServer } from "../../src/preview/server";
import { type AnyKind, ownerOf, parseServed } from "../../stacks/contract/kind";
import { objectKey, stackName } from "../../stacks/contract/object";
import { runProgram } from "../../stacks/contract/run-program";
import { openEngineIn } from "../automation/engine-in";
import { TestAuthority } from "../tls/test-authority";
import { bundle } from "./bundle";

/** An engine with a state of its own. */
export async function openTestEngine(options: { previewsAtOnce?: number } = {}) {
  const directory = await mkdtemp(join(tmpdir(), "kindstack-previews-"));
  const { processes, ...opened } = await openEngineIn(directory, {}, options);
  return {
    directory,
    ...opened,
    async close() {
      await processes.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** An operator's server of previews, with a certificate of its own. */
export async function serveInspections(
  options: Pick<InspectionServerOptions, "client" | "engine"> & Partial<InspectionServerOptions>,
) {
  const authority = await TestAuthority.create();
  const { certificate: cert, key } = await authority.server();
  const follow = (use: (context: { cert: string; key: string }) => void) => use({ cert, key });
  const server = await startInspectionServer({
    ...{ port: 0, host: "127.0.0.1", kinds: [bundle], graceMs: 0, logger: pino({ level: "silent" }) },
    tls: { follow, close: () => {} } as never,
    ...options,
  });
  const address = { url: `https://127.0.0.1:${server.port}`, ca: authority.own.certificate };
  const close = () => server.close();
  return { address, close, [Symbol.asyncDispose]: close };
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
