import { pino } from "pino";
import { KubernetesClient, type Manifest } from "../providers/kubernetes/client";
import { startAdmission } from "../src/admission/admission";
import { installKinds } from "../src/operator/install";
import { capsuleTenant } from "../stacks/kinds/capsule-tenant/kind";
import { DEFAULT_USER_GROUP, TENANT_LABEL } from "../stacks/kinds/capsule-tenant/labels";
import { type BenchContext, withBenchCluster } from "./cluster";
import { beside, type Section, summary } from "./results";
import { userConfig } from "./users";
import { forEachAtOnce } from "./writers";

const FULL = { tenants: 500, rounds: 100 };
const QUICK = { tenants: 20, rounds: 10 };
const NAMESPACES = 3;
/** Before the first round that counts, while connections are being opened. */
const WARM_UP_ROUNDS = 5;

/** What decisions about namespaces cost those who create them, among many tenants; no operator runs. */
export async function admission(context: BenchContext): Promise<Section> {
  const { tenants, rounds } = context.quick ? QUICK : FULL;
  return withBenchCluster(context, async ({ client: admin, dev }) => {
    const owner = new KubernetesClient(await userConfig(dev.dir, "owner-0", DEFAULT_USER_GROUP));
    await installKinds(admin, [capsuleTenant]);
    context.detail(`${tenants} tenants of ${NAMESPACES} namespaces`);
    await fill(admin, tenants);
    const served = await startAdmission({
      kinds: [capsuleTenant],
      client: admin,
      logger: pino({ level: "silent" }),
      port: 0,
      host: "127.0.0.1",
      namespace: "default",
    });
    const times = { administrator: [] as number[], dryRun: [] as number[], stored: [] as number[] };
    try {
      for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
        context.signal.throwIfAborted();
        const name = `round-${round + WARM_UP_ROUNDS}`;
        const administrator = await timed(() => create(admin, `${name}-administrator`, true));
        const dryRun = await timed(() => create(owner, `${name}-dry`, true));
        const stored = await timed(() => create(owner, `${name}-stored`, false));
        if (round < 0) continue;
        times.administrator.push(administrator);
        times.dryRun.push(dryRun);
        times.stored.push(stored);
      }
    } finally {
      await served?.close();
      await owner.close();
    }
    const against = beside("an administrator's dry run, without the webhook", summary(times.administrator));
    return {
      id: "admission",
      title: `A namespace created among ${tenants} tenants of ${NAMESPACES}`,
      notes: [`${rounds} alternating rounds; the median, with the least and the most.`],
      figures: [
        { what: "an owner's dry run", unit: "ms", ...summary(times.dryRun), against },
        { what: "an owner's creation", unit: "ms", ...summary(times.stored), against },
      ],
    };
  });
}

async function fill(admin: KubernetesClient, count: number): Promise<void> {
  const indexes = Array.from({ length: count }, (_, index) => index);
  await forEachAtOnce(indexes, async (index) => {
    const name = `tenant-${index}`;
    const spec = { owner: { kind: "User", name: `owner-${index}` }, namespaceQuota: 10_000 };
    await admin.create({ apiVersion: "capsule.clastix.io/v1alpha1", kind: "Tenant", metadata: { name }, spec });
    for (let number = 0; number < NAMESPACES; number++) {
      const metadata = { name: `${name}-${number}`, labels: { [TENANT_LABEL]: name } };
      await admin.create({ apiVersion: "v1", kind: "Namespace", metadata });
    }
  });
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
