import fs from "node:fs/promises";
import path from "node:path";
import { execa } from "execa";
import { freePort } from "../src/dev/ports";
import { packageRoot } from "../src/package";
import type { Report } from "../src/preview/report";
import { createAuthority, issueCertificate } from "../src/tls/certificate";
import { type BenchCluster, type BenchContext, withBenchCluster } from "./cluster";
import { createWriters, type Measured, withOperator } from "./lifecycle";
import { isReady } from "./object-watch";
import { sampleTree } from "./processes";
import { atMost, beside, type Figure, type Section, seconds } from "./results";
import { keyOf, WRITER, writersOf } from "./writers";

/** Two fleets, and the updates of another object before a preview and during it. */
const FULL = { small: 1_000, large: 10_000, updates: 60 };
const QUICK = { small: 10, large: 20, updates: 2 };
const PREVIEWER = { namespace: "default", name: "previewer" };
/** A program that makes something else of each object. */
const CHANGED = `import { defineKind, Type } from "kindstack";
import { Row } from "kindstack/providers/postgres";
const spec = Type.Object({ table: Type.String(), name: Type.String(), age: Type.Integer(), country: Type.String() });
export const postgresWriter = defineKind({
  group: "demo.yash.com", version: "v1", kind: "PostgresWriter", plural: "postgreswriters", singular: "postgreswriter",
  scope: "Namespaced", description: "", spec, status: Type.Object({}), columns: [], owns: [], directory: __dirname,
  report: () => ({}),
  program({ metadata: { name, namespace }, spec: { table, age, ...values } }, { owner, cluster }) {
    const key = \`\${namespace}/\${name}\`;
    new Row(key, { table, key: { id: key }, values: { ...values, age: age + 1 }, owner: { ...owner, cluster, namespace } });
  },
});
`;

/** What it takes to see what a changed program would do to all objects of its kind. */
export async function fleet(context: BenchContext): Promise<Section> {
  const { small, large, updates } = context.quick ? QUICK : FULL;
  return withBenchCluster(context, async (cluster) => {
    const server = await serving(cluster);
    const start = () => cluster.startOperator({}, server.args);
    return withOperator(context, cluster, start, async (measured) => {
      const writers = writersOf("fleet", large);
      await createWriters(measured, writers.slice(0, small));
      const branch = path.join(cluster.scratch, "branch");
      await fs.mkdir(branch);
      await fs.writeFile(path.join(branch, "index.ts"), CHANGED);
      await fs.symlink(path.join(packageRoot, "node_modules"), path.join(cluster.scratch, "node_modules"));
      const first = await previewed(measured, branch, small);
      await createWriters(measured, writers.slice(small));
      const second = await previewed(measured, branch, large);
      const words = ["submit", ...second.files, "--kinds", "postgreswriters", ...(await server.asked())];
      const delay = await delayOf(measured, updates, (signal) => run(measured, ["fleet", ...words], signal));
      return {
        id: "fleet",
        title: "A changed program",
        notes: [
          "The commands as they are used, from their start to their end, while the operator runs. Each object differs.",
          `An update: a merge patch until the object is Ready with it; the median of ${updates}, one after the other.`,
        ],
        figures: [...figuresOf(first, 25), ...figuresOf(second, 180), delay],
      };
    });
  });
}

interface Previewed extends Record<"whole" | "fetched" | "ran" | "submitted", Awaited<ReturnType<typeof timed>>> {
  count: number;
  /** What was fetched and declared. */
  files: [string, string];
}

/** Previews all objects by the one command, and then by the three. */
async function previewed(measured: Measured, branch: string, count: number): Promise<Previewed> {
  const file = (name: string) => path.join(measured.cluster.scratch, `${name}.json`);
  const files: Previewed["files"] = [file("fleet"), file("declared")];
  const installed = ["--kinds", "postgreswriters"];
  const whole = await timed(measured, ["preview", "--fleet", "--kinds", branch, "--report", file("whole")]);
  await expectUpdates(file("whole"), count);
  const fetched = await timed(measured, ["fleet", "fetch", ...installed, "--to", files[0]]);
  const ran = await timed(measured, ["fleet", "run", files[0], "--kinds", branch, "--to", files[1]]);
  const submitted = await timed(measured, ["fleet", "submit", ...files, ...installed, "--report", file("steps")]);
  await expectUpdates(file("steps"), count);
  return { count, files, whole, fetched, ran, submitted };
}

function figuresOf({ count, whole, fetched, ran, submitted }: Previewed, limit: number): Figure[] {
  const of = `of ${count} objects`;
  return [
    { what: `kindstack preview --fleet ${of}`, ...seconds(whole.ms), mark: atMost(limit) },
    { what: `kindstack preview --fleet ${of}: most memory`, value: whole.peakMiB, unit: "MiB", mark: atMost(1024) },
    { what: `kindstack fleet fetch ${of}`, ...seconds(fetched.ms) },
    { what: `kindstack fleet run ${of}`, ...seconds(ran.ms) },
    { what: `kindstack fleet submit ${of}`, ...seconds(submitted.ms), mark: atMost(limit) },
    { what: `kindstack fleet submit ${of}: most memory`, value: submitted.peakMiB, unit: "MiB", mark: atMost(1024) },
  ];
}

/** How the operator is told to preview for others, and how it is asked. */
async function serving({ scratch, client }: BenchCluster) {
  const authority = await createAuthority("bench", new Date(Date.now() + DAY_MS));
  const folder = path.join(scratch, "tls");
  const ca = path.join(folder, "ca.crt");
  const port = await freePort();
  const { certificate, key } = await issueCertificate(authority, {
    subject: { CN: "localhost" },
    usages: ["server"],
    names: ["localhost", "127.0.0.1"],
    notAfter: new Date(Date.now() + DAY_MS),
  });
  await fs.mkdir(folder);
  await fs.writeFile(path.join(folder, "tls.crt"), certificate);
  await fs.writeFile(path.join(folder, "tls.key"), key);
  await fs.writeFile(ca, authority.certificate);
  return {
    args: ["--preview-port", String(port), "--preview-certificate", folder],
    async asked() {
      const [rbac, account] = ["rbac.authorization.k8s.io", "ServiceAccount"];
      await client.apply({ apiVersion: "v1", kind: account, metadata: PREVIEWER });
      await client.apply({
        apiVersion: `${rbac}/v1`,
        kind: "ClusterRoleBinding",
        metadata: { name: PREVIEWER.name },
        roleRef: { apiGroup: rbac, kind: "ClusterRole", name: "cluster-admin" },
        subjects: [{ kind: account, ...PREVIEWER }],
      });
      const path = `/api/v1/namespaces/${PREVIEWER.namespace}/serviceaccounts/${PREVIEWER.name}/token`;
      const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 7200 } };
      const { status } = await client.json<{ status: { token: string } }>("POST", path, { body });
      const file = `${folder}/token`;
      await fs.writeFile(file, status.token, { mode: 0o600 });
      return ["--server", `https://localhost:${port}`, "--server-ca", ca, "--token-file", file];
    },
  };
}

const DAY_MS = 86_400_000;

/** The updates of one object beside a command, and without it. */
async function delayOf(
  measured: Measured,
  rounds: number,
  command: (signal: AbortSignal) => Promise<unknown>,
): Promise<Figure> {
  const { context, cluster, watch } = measured;
  const writer = { namespace: "beside", name: "writer" };
  await createWriters(measured, [writer]);
  const updates = async (what: string, isOver = () => false) => {
    const times: number[] = [];
    for (let age = 1; age <= rounds && !isOver(); age++) {
      context.detail(`update ${age} of ${rounds} ${what}`);
      const started = performance.now();
      const isUpdated = (object: Parameters<typeof isReady>[0]) =>
        isReady(object) && (object?.spec as { age?: number } | undefined)?.age === age;
      await cluster.client.mergePatch(WRITER, writer.name, writer.namespace, { spec: { age } });
      await watch.until([keyOf(writer)], isUpdated);
      times.push(performance.now() - started);
    }
    return seconds(times);
  };
  const alone = await updates("alone");
  const stop = new AbortController();
  let hasEnded = false;
  const running = command(AbortSignal.any([context.signal, stop.signal])).finally(() => {
    hasEnded = true;
  });
  running.catch(() => {});
  const during = await updates("beside a preview", () => hasEnded);
  if (hasEnded && !context.quick) await running; // it has failed, or was too short
  stop.abort();
  const against = beside("without the preview", alone);
  return { what: "one update while the operator previews the fleet", ...during, against, mark: atMost(1.1, "ratio") };
}

/** The time that a command takes, and the most memory of it and of its engine. */
async function timed(measured: Measured, words: string[]) {
  const { signal, detail } = measured.context;
  detail(words.slice(0, 2).join(" "));
  const started = performance.now();
  const running = run(measured, words, signal);
  const end = sampleTree(running.pid as number);
  try {
    await running;
    return { ms: performance.now() - started, peakMiB: (await end()).peakMiB };
  } finally {
    await end();
  }
}

function run({ cluster: { dev } }: Measured, words: readonly string[], cancelSignal: AbortSignal) {
  const main = path.join(packageRoot, "dist/src/cli/main.js");
  return execa(process.execPath, [main, ...words], { env: dev.env, cancelSignal });
}

async function expectUpdates(file: string, count: number): Promise<void> {
  const { summary } = JSON.parse(await fs.readFile(file, "utf8")) as Report;
  if (summary.update !== count) throw new Error(`the report shows ${JSON.stringify(summary)}, not ${count} updates`);
}
