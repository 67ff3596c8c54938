import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { controlPlane } from "../control-plane";
import { filesUnder, readIfThere } from "../files";
import { TestDatabase } from "../providers/postgres/database";
import { removeUntilGone, untilCondition, untilGone, untilReady } from "./conditions";
import { postgresWriter, tenant, uniqueName } from "./manifests";
import { apply, client, get, remove, tokenOf } from "./objects";
import { TestOperator } from "./operator";

/*
 * Each credential that an operator is given is a word that occurs nowhere else; after it has made, changed, failed and
 * deleted, they are looked for in everything that it has written, said, stored and started.
 */

const canary = (what: string) => `canary-${what}-${randomBytes(12).toString("hex")}`;
const secrets = {
  database: canary("database"),
  backend: canary("backend"),
  passphrase: canary("passphrase"),
  token: "", // known when the API server has made it
};
const { env } = controlPlane();
const [rows, state] = [new TestDatabase(env), new TestDatabase(env)];
const roles = { rows: `${rows.name}_rows`, state: `${rows.name}_state` };
const account = { name: uniqueName("canary"), namespace: "default" };
const operator = new TestOperator({ args: ["--metrics-port", "0", "--concurrency", "2"] });

beforeAll(async () => {
  await state.open();
  await rows.open();
  await rows.query(`CREATE ROLE ${roles.rows} LOGIN SUPERUSER PASSWORD '${secrets.database}'`);
  await rows.query(`CREATE ROLE ${roles.state} LOGIN SUPERUSER PASSWORD '${secrets.backend}'`);
  secrets.token = await administratorsToken();
});
afterAll(async () => {
  await operator.dispose();
  await state.close();
  await rows.query(`DROP OWNED BY ${roles.rows} CASCADE; DROP ROLE ${roles.rows}, ${roles.state}`);
  await rows.close();
  await client.json("DELETE", `/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/${account.name}`);
  await client.json("DELETE", `/api/v1/namespaces/default/serviceaccounts/${account.name}`);
});

async function administratorsToken(): Promise<string> {
  const accounts = "/api/v1/namespaces/default/serviceaccounts";
  await client.json("POST", accounts, { body: { metadata: account } });
  await client.json("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    body: {
      metadata: { name: account.name },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
      subjects: [{ kind: "ServiceAccount", ...account }],
    },
  });
  return tokenOf("default", account.name);
}

/** A kubeconfig with the token; it is the one file that may hold it. */
function writeKubeconfig(file: string): void {
  const config = new KubeConfig();
  config.loadFromFile(controlPlane().kubeconfig);
  const { server = "", caData } = config.getCurrentCluster() ?? {};
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(
    file,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "canary",
      contexts: [{ name: "canary", context: { cluster: "canary", user: "canary" } }],
      clusters: [{ name: "canary", cluster: { server, "certificate-authority-data": caData } }],
      users: [{ name: "canary", user: { token: secrets.token } }],
    }),
  );
}

/** Which of the credentials a text holds, as they are or in base64. */
function found(text: string): string[] {
  return Object.entries(secrets)
    .filter(([, secret]) =>
      [secret, Buffer.from(secret).toString("base64").replace(/=+$/, "").slice(0, -1)].some((form) =>
        text.includes(form),
      ),
    )
    .map(([name]) => name);
}

/** The arguments and the environment of every process of an update that is seen until `stop`. */
function watchUpdates() {
  const seen = new Map<number, { command: string; environment: string }>();
  const timer = setInterval(() => {
    for (const { pid, command } of operator.engineProcesses()) {
      const environment = readOrEmpty(`/proc/${pid}/environ`);
      if (!seen.has(pid) && environment !== "") seen.set(pid, { command, environment });
    }
  }, 40);
  return { seen, stop: () => clearInterval(timer) };
}

function readOrEmpty(file: string): string {
  try {
    return fs.readFileSync(file, "utf8");
  } catch {
    return ""; // it has ended
  }
}

it("a credential is neither stored, nor said, nor handed to a process that does not need it", async () => {
  const table = await rows.createStudents();
  await rows.query(`ALTER TABLE ${table} OWNER TO ${roles.rows}`);
  const kubeconfig = path.join(operator.directory, "kubeconfig");
  writeKubeconfig(kubeconfig);
  const url = (password: string) => state.backendUrl({ user: roles.state, password });
  const given = {
    KUBECONFIG: kubeconfig,
    PSQL_DBNAME: rows.name,
    PSQL_USER: roles.rows,
    PSQL_PASSWORD: secrets.database,
    PULUMI_BACKEND_URL: url(secrets.backend),
    PULUMI_CONFIG_PASSPHRASE: secrets.passphrase,
    PULUMI_CONFIG_PASSPHRASE_FILE: "",
    KINDSTACK_LOG_LEVEL: "trace",
  };
  const [team, writer, failing] = [
    tenant(uniqueName("canary")),
    postgresWriter(uniqueName("canary"), { table }),
    postgresWriter(uniqueName("canary"), { table: "there_is_none" }),
  ];
  const objects: Manifest[] = [team, writer, failing];
  const updates = watchUpdates();

  // All goes well, but for one object.
  await operator.start({ env: given });
  for (const object of objects) await apply(object);
  await Promise.all([untilReady(team), untilReady(writer), untilCondition(failing, "Ready", "False", "TableMissing")]);
  await apply({ ...writer, spec: { ...(writer.spec as object), age: 24 } });
  await untilReady(writer);
  const metrics = await operator.scrape(secrets.token);
  expect(metrics).toMatchObject({ status: 200, text: expect.stringContaining("kindstack_updates_total") });

  // The backend is away: errors of the CLI tend to quote its URL.
  await operator.restart({ env: { ...given, PULUMI_BACKEND_URL: url(secrets.backend).replace(state.name, "gone") } });
  await apply({ ...writer, spec: { ...(writer.spec as object), age: 25 } });
  await untilCondition(writer, "Ready", "False");
  // So is the database.
  await operator.restart({ env: { ...given, PSQL_DBNAME: "gone" } });
  await apply({ ...writer, spec: { ...(writer.spec as object), age: 26 } });
  await untilCondition(writer, "Ready", "False");

  const live = await Promise.all(objects.map(get));
  await operator.restart({ env: given });
  await untilReady(writer);
  await removeUntilGone(team);
  const stored = await state.query("SELECT * FROM pulumi_state");
  updates.stop();

  expect(stored.length).toBeGreaterThan(2);
  expect(found(stored.map((row) => Object.values(row).map(textOf).join("\n")).join("\n")), "state").toEqual([]);
  expect(found(JSON.stringify(await rows.query("SELECT * FROM kindstack_ownership.records"))), "records").toEqual([]);
  expect(found(operator.log), "log").toEqual([]);
  expect(found(metrics.text), "metrics").toEqual([]);
  expect(found(JSON.stringify(live)), "objects").toEqual([]);
  const events = await client.json<object>("GET", "/apis/events.k8s.io/v1/events");
  expect(found(JSON.stringify(events)), "events").toEqual([]);
  const files = filesUnder(operator.directory).filter((file) => file !== kubeconfig);
  expect(files.filter((file) => found(readIfThere(file, "latin1") ?? "").length > 0)).toEqual([]);

  const processes = [...updates.seen.values()];
  expect(processes.length).toBeGreaterThan(2);
  expect(processes.map(({ environment }) => found(environment))).toContainEqual(["backend", "passphrase"]);
  for (const { command, environment } of processes) {
    expect(found(command), command).toEqual([]);
    // The CLI opens the state, and needs these two for it; what providers need stays in the operator.
    expect(
      found(environment).filter((name) => !["backend", "passphrase"].includes(name)),
      command,
    ).toEqual([]);
    expect(environment).not.toMatch(/(^|\0)(KUBECONFIG|PSQL_|PG[A-Z]|KINDSTACK_)/);
  }

  for (const object of [writer, failing]) {
    await remove(object);
    await eventually(() => untilGone(object));
  }
});

/** A column of the state, which may hold bytes, and those may be compressed. */
function textOf(value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString("latin1") : JSON.stringify(value);
}
