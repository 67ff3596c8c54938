import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { Agent, request } from "undici";
import { expect } from "vitest";
import { parse } from "yaml";
import { eventually } from "../../src/testing/eventually";
import { kubectl, node } from "./installation";

/** How long anything may take after a disturbance. */
export const SETTLED_MS = 60_000;
const SPREAD = 3;
const HAMMERS = 4;
const PAUSE_MS = 40;

/** PostgresWriters in three namespaces, made by one command. Their rows have their names. */
export async function createWriters(prefix: string, count: number): Promise<void> {
  const namespaces = Array.from({ length: SPREAD }, (_, index) => `load-${index}`);
  const spaces = namespaces.map((name) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } }));
  await kubectl("apply -f -", listOf(spaces));
  const writers = Array.from({ length: count }, (_, index) => ({
    apiVersion: "demo.yash.com/v1",
    kind: "PostgresWriter",
    metadata: { name: `${prefix}-${index}`, namespace: namespaces[index % SPREAD] },
    spec: { table: "students", name: `${prefix}-${index}`, age: 20, country: "canada" },
  }));
  await kubectl("create -f -", listOf(writers));
}

export async function deleteWriters(timeoutMs = 120_000): Promise<void> {
  await kubectl("delete postgreswriters --all -A --wait=false"); // kubectl waits for one after the other
  await settled(0, timeoutMs);
}

/** How many PostgresWriters there are, how many of them are Ready, and how many rows the database has of them. */
export async function countWriters(): Promise<{ objects: number; ready: number; rows: number }> {
  const { items } = JSON.parse(await kubectl("get postgreswriters -A -o json")) as {
    items: { status?: { conditions?: { type: string; status: string }[] } }[];
  };
  const isReady = (conditions: { type: string; status: string }[] = []) =>
    conditions.some(({ type, status }) => type === "Ready" && status === "True");
  return {
    objects: items.length,
    ready: items.filter(({ status }) => isReady(status?.conditions)).length,
    rows: await countRows(),
  };
}

export async function countRows(): Promise<number> {
  return Number((await query("select count(*) from students"))[0]?.count);
}

/** Waits until nothing is lost, doubled or left locked. */
export async function settled(count: number, timeoutMs = SETTLED_MS): Promise<void> {
  await eventually(async () => {
    expect(await countWriters()).toEqual({ objects: count, ready: count, rows: count });
  }, timeoutMs);
  await eventually(async () => expect(await countLocks()).toBe(0));
}

/** Locks on stacks, in a backend of PostgreSQL. */
async function countLocks(): Promise<number> {
  return Number((await query("select count(*) from pulumi_state where key like '%/locks/%.json'"))[0]?.count);
}

async function query(text: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: node.databaseUrl.replace(node.databaseHost, "127.0.0.1") });
  await client.connect();
  try {
    return (await client.query(text)).rows as Record<string, unknown>[];
  } finally {
    await client.end();
  }
}

/** What an owner of a tenant is answered who makes namespaces (as a dry run) all the while. */
export class Hammer {
  readonly failures: string[] = [];
  requests = 0;
  #stopped = false;
  readonly #agent: Agent;
  readonly #server: string;
  readonly #running: Promise<void>[];

  constructor(user: string, tenant: string) {
    const config = parse(readFileSync(node.kubeconfig, "utf8")) as {
      clusters: { cluster: { server: string; "certificate-authority-data": string } }[];
      users: { user: { "client-certificate-data": string; "client-key-data": string } }[];
    };
    const [{ cluster } = { cluster: { server: "", "certificate-authority-data": "" } }] = config.clusters;
    const [{ user: credentials } = { user: { "client-certificate-data": "", "client-key-data": "" } }] = config.users;
    const text = (data: string) => Buffer.from(data, "base64").toString();
    this.#server = cluster.server;
    this.#agent = new Agent({
      connect: {
        ca: text(cluster["certificate-authority-data"]),
        cert: text(credentials["client-certificate-data"]),
        key: text(credentials["client-key-data"]),
      },
    });
    this.#running = Array.from({ length: HAMMERS }, (_, worker) => this.#work(user, tenant, worker));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
    await this.#agent.close();
  }

  async #work(user: string, tenant: string, worker: number): Promise<void> {
    for (let count = 0; !this.#stopped; count++) {
      this.requests++;
      const { statusCode, body } = await request(`${this.#server}/api/v1/namespaces?dryRun=All`, {
        dispatcher: this.#agent,
        method: "POST",
        headers: {
          "content-type": "application/json",
          "impersonate-user": user,
          "impersonate-group": "capsule.clastix.io",
        },
        body: JSON.stringify({
          apiVersion: "v1",
          kind: "Namespace",
          metadata: { name: `${tenant}-h${worker}-${count}` },
        }),
      });
      const answer = await body.text();
      if (statusCode !== 201) this.failures.push(`${statusCode} ${answer}`);
      await delay(PAUSE_MS);
    }
  }
}

function listOf(items: readonly object[]): string {
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}
