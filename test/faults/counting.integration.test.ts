import fs from "node:fs";
import path from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { Client } from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { KubernetesClient, known } from "../../providers/kubernetes/client";
import { controlPlane } from "../control-plane";
import { useDirectory } from "../directories";
import { CONFIG_MAP, configMap, uniqueName } from "../e2e/manifests";
import { find, remove } from "../e2e/objects";
import { useDatabase } from "../providers/postgres/database";
import { ApiProxy } from "./api-proxy";
import { PostgresProxy } from "./postgres-proxy";
import { StateWatch } from "./state-watch";

/* What the crash tests say of where a crash came is as true as this. */

const directory = useDirectory();

describe("the proxy of the API server", () => {
  let proxy: ApiProxy;
  let client: KubernetesClient;
  beforeAll(async () => {
    proxy = await ApiProxy.start(controlPlane().kubeconfig);
    const config = new KubeConfig();
    config.loadFromFile(proxy.writeKubeconfig(directory));
    client = new KubernetesClient(config);
    return async () => {
      await client.close();
      proxy.close();
    };
  });
  it("tells writes from what is only asked, and says that they were answered once they are done", async () => {
    const [name, done] = [uniqueName("counted"), [] as string[]];
    proxy.faults = { answered: ({ intent, method }, status) => done.push(`${intent} ${method} ${status}`) > 0 };
    await client.create(configMap(name, "default"));
    await known(client.get(CONFIG_MAP, name, "default"));
    await client.list(CONFIG_MAP);
    await client.delete(CONFIG_MAP, name, "default");
    expect(done).toEqual(["write POST 201", "get GET 200", "list GET 200", "write DELETE 200"]);
  });

  it("keeps the answer to a write that was done from who asked for it", async () => {
    const name = uniqueName("cut");
    proxy.faults = { answered: () => false };
    await expect(client.create(configMap(name, "default"))).rejects.toThrow();
    expect(await find(configMap(name, "default"))).toHaveProperty("metadata.uid");
    await remove(configMap(name, "default"));
  });
});

describe("the proxy of PostgreSQL", () => {
  const { env } = controlPlane();
  const database = useDatabase();
  let proxy: PostgresProxy;
  beforeAll(async () => {
    await database.query("CREATE TABLE counted (id integer)");
    proxy = await PostgresProxy.start({ host: env.PSQL_HOST ?? "", port: Number(env.PSQL_PORT) });
    return () => proxy.close();
  });
  const connect = async () => {
    const { PSQL_USER: user = "", PSQL_PASSWORD: password = "" } = env;
    const client = new Client({ host: "127.0.0.1", port: proxy.port, user, password, database: database.name });
    client.on("error", () => undefined);
    await client.connect();
    return client;
  };

  it("counts each statement, with values or without, and nothing else", async () => {
    const client = await connect();
    const answered: number[] = [];
    proxy.faults = { answered: (statement) => answered.push(statement) > 0 };
    await client.query("BEGIN");
    await client.query("INSERT INTO counted VALUES ($1)", [1]);
    await client.query("INSERT INTO counted SELECT generate_series(2, 20000)");
    await client.query("SELECT * FROM counted"); // its answer comes in many pieces
    await client.query("ROLLBACK");
    await client.end();
    expect(answered).toEqual([1, 2, 3, 4, 5]);
  });

  it("keeps the answer to a statement that was done from who asked for it", async () => {
    const client = await connect();
    proxy.faults = { answered: () => false };
    await expect(client.query("INSERT INTO counted VALUES (7)")).rejects.toThrow();
    expect(await database.query("SELECT id FROM counted")).toEqual([{ id: 7 }]);
  });
});

it("the watch of the state tells of each file that comes, is replaced or goes, in new folders as well", async () => {
  const told: string[] = [];
  const state = path.join(directory, "state");
  fs.mkdirSync(state);
  const watch = new StateWatch(state, (file) => told.push(path.relative(state, file)));
  const isTold = (expected: string[]) => expect.poll(() => told).toEqual(expected);
  try {
    fs.writeFileSync(path.join(state, "a.tmp"), "1");
    await isTold(["a.tmp"]);
    fs.renameSync(path.join(state, "a.tmp"), path.join(state, "a"));
    await isTold(["a.tmp", "a.tmp", "a"]);
    fs.mkdirSync(path.join(state, "locks/stack"), { recursive: true });
    fs.writeFileSync(path.join(state, "locks/stack/lock"), "1");
    await isTold(["a.tmp", "a.tmp", "a", "locks/stack/lock"]);
    fs.rmSync(path.join(state, "locks"), { recursive: true });
    fs.mkdirSync(path.join(state, "locks/stack"), { recursive: true });
    await expect.poll(() => told.filter((file) => file === "locks/stack/lock").length).toBe(2);
    fs.writeFileSync(path.join(state, "locks/stack/again"), "1");
    await expect.poll(() => told.at(-1)).toBe("locks/stack/again");
  } finally {
    watch.close();
  }
});
