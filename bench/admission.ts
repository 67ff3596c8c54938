import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { pino } from "pino";
import { KubernetesClient, type Manifest } from "../providers/kubernetes/client";
import { startAdmission } from "../src/admission/admission";
import { startDevCluster } from "../src/dev/cluster";
import { userConfig } from "../src/dev/users";
import { installKinds } from "../src/watcher/install";
import { capsuleTenant } from "../stacks/capsule-tenant/kind";
import { DEFAULT_USER_GROUP, TENANT_LABEL } from "../stacks/capsule-tenant/labels";

/** Milliseconds a request, in the order in which they were made. */
export interface AdmissionFigures {
  /** A namespace that an administrator creates: nobody is asked. */
  bare: number[];
  /** A namespace that an owner creates: the webhook decides, and counts the quota. */
  dryRun: number[];
  /** The same, and a place in the quota is written down. */
  decided: number[];
}

const TENANTS = 500;
const NAMESPACES = 3;
const AT_ONCE = 20;

/** Measures decisions about namespaces in a cluster of its own, with 500 tenants of 3 namespaces, and no operator. */
export async function measureAdmission(rounds: number, log: (line: string) => void): Promise<AdmissionFigures> {
  const directory = await mkdtemp(join(tmpdir(), "kindstack-bench-"));
  const cluster = await startDevCluster({ dir: directory, log });
  const config = new KubeConfig();
  config.loadFromFile(cluster.kubeconfig);
  const admin = new KubernetesClient(config);
  const owner = new KubernetesClient(await userConfig(directory, "owner-0", DEFAULT_USER_GROUP));
  try {
    await installKinds(admin, [capsuleTenant]);
    await fill(admin, log);
    const admission = await startAdmission({
      kinds: [capsuleTenant],
      client: admin,
      logger: pino({ level: "silent" }),
      port: 0,
      host: "127.0.0.1",
      namespace: "default",
    });
    const figures: AdmissionFigures = { bare: [], dryRun: [], decided: [] };
    for (let round = -5; round < rounds; round++) {
      log(`${Math.max(round, 0)} of ${rounds}`);
      const times = {
        bare: await timed(() => create(admin, `bare-${round + 5}`, true)),
        dryRun: await timed(() => create(owner, `dry-${round + 5}`, true)),
        decided: await timed(() => create(owner, `decided-${round + 5}`, false)),
      };
      if (round < 0) continue; // connections are being opened
      for (const name of ["bare", "dryRun", "decided"] as const) figures[name].push(times[name]);
    }
    await admission?.close();
    return figures;
  } finally {
    await admin.close();
    await owner.close();
    await cluster.stop(log);
    await rm(directory, { recursive: true, force: true });
  }
}

async function fill(admin: KubernetesClient, log: (line: string) => void): Promise<void> {
  const tenants = await admin.resourceType("capsule.clastix.io/v1alpha1", "Tenant");
  const namespaces = await admin.resourceType("v1", "Namespace");
  const indexes = Array.from({ length: TENANTS }, (_, index) => index);
  for (let from = 0; from < TENANTS; from += AT_ONCE) {
    log(`${from} of ${TENANTS} tenants`);
    await Promise.all(
      indexes.slice(from, from + AT_ONCE).map(async (index) => {
        const name = `tenant-${index}`;
        const spec = { owner: { kind: "User", name: `owner-${index}` }, namespaceQuota: 10_000 };
        await admin.create(tenants, { apiVersion: tenants.apiVersion, kind: "Tenant", metadata: { name }, spec });
        for (let number = 0; number < NAMESPACES; number++) {
          const metadata = { name: `${name}-${number}`, labels: { [TENANT_LABEL]: name } };
          await admin.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata });
        }
      }),
    );
  }
}

async function create(client: KubernetesClient, name: string, dryRun: boolean): Promise<void> {
  const body: Manifest = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
  await client.json("POST", "/api/v1/namespaces", { query: { dryRun: dryRun ? "All" : undefined }, body });
}

async function timed(work: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
