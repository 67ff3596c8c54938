import fs from "node:fs";
import path from "node:path";
import { execa } from "execa";
import { freePort } from "../../../src/dev/ports";
import { eventually } from "../../../src/testing/eventually";
import { resolveBinary } from "../../../src/toolchain/resolve";
import { testTools } from "../../tools";
import { copyForServers } from "./unprivileged";

/** PgBouncer with its defaults but for what it must be told, before a PostgreSQL server. */
export interface PgBouncer extends AsyncDisposable {
  port: number;
}

/**
 * Starts PgBouncer in transaction mode.
 *
 * @param users their passwords, by name
 * @param connectQuery what it runs on each connection to the server
 */
export async function startPgBouncer(
  server: { host: string; port: number },
  users: Record<string, string>,
  connectQuery?: string,
): Promise<PgBouncer> {
  const program = await resolveBinary(testTools.pgbouncer);
  const { directory, user } = await copyForServers(program);
  const port = await freePort();
  const userList = Object.entries(users).map(([name, password]) => `"${name}" "${password}"\n`);
  fs.writeFileSync(path.join(directory, "users.txt"), userList.join(""));
  fs.writeFileSync(
    path.join(directory, "pgbouncer.ini"),
    `[databases]
* = host=${server.host} port=${server.port}${connectQuery ? ` connect_query='${connectQuery}'` : ""}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${directory}/users.txt
pool_mode = transaction
`,
  );
  const running = execa(path.join(directory, path.basename(program)), [path.join(directory, "pgbouncer.ini")], {
    ...user,
    cwd: directory,
    all: true,
    reject: false,
  });
  let output = "";
  running.all?.on("data", (data: Buffer) => {
    output += data;
  });
  const stop = async () => {
    running.kill("SIGKILL");
    await running;
    fs.rmSync(directory, { recursive: true });
  };
  try {
    await eventually(() => {
      if (!output.includes("listening on 127.0.0.1")) throw new Error(`PgBouncer does not start: ${output}`);
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, [Symbol.asyncDispose]: stop };
}
