import fs from "node:fs";
import path from "node:path";
import { execa } from "execa";
import { Client } from "pg";
import { freePort } from "../../../src/dev/ports";
import { eventually } from "../../../src/testing/eventually";
import type { CertifiedKey } from "../../../src/tls/certificate";
import { resolveBinary } from "../../../src/toolchain/resolve";
import { testTools } from "../../tools";
import { copyForServers } from "./unprivileged";

/** The superuser of all servers; nobody needs a password. */
export const OWNER = "owner";

/** A server of the distribution's PostgreSQL, and its data. */
export interface Server {
  port: number;
  /** Ends it as a power failure does. */
  kill(): Promise<void>;
}

/** Servers of PostgreSQL beside that of the control plane: others, with all that backups and replication need. */
export class Servers implements AsyncDisposable {
  readonly #program: string;
  readonly #directory: string;
  readonly #user: { uid?: number; gid?: number };
  readonly #running: Server[] = [];

  private constructor(program: string, directory: string, user: { uid?: number; gid?: number }) {
    this.#program = program;
    this.#directory = directory;
    this.#user = user;
  }

  static async open(): Promise<Servers> {
    const program = await resolveBinary(testTools.postgresql);
    const { directory, user } = await copyForServers(program);
    const data = path.join(directory, "data");
    fs.mkdirSync(data);
    if (user.uid !== undefined) fs.chownSync(data, user.uid, user.gid ?? user.uid);
    return new Servers(path.join(directory, path.basename(program)), data, user);
  }

  /** A new server, with a system identifier of its own. @param tls its certificate, where clients may use TLS */
  async start(tls?: CertifiedKey): Promise<Server> {
    const port = await freePort();
    const how = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
    await this.run("initdb", "-D", this.#data(port), "-U", OWNER, ...how);
    return this.#serve(port, tls && this.#certify(port, tls));
  }

  /** A read-only replica, which follows a server. */
  async standby(of: Server): Promise<Server> {
    const port = await freePort();
    const how = ["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"];
    await this.run("pg_basebackup", ...at(of), "-D", this.#data(port), ...how);
    return this.#serve(port);
  }

  async promote({ port }: Server): Promise<void> {
    await this.run("pg_ctl", "promote", "-D", this.#data(port), "--wait");
  }

  /** Runs a program of PostgreSQL's. @returns its output */
  async run(program: string, ...args: string[]): Promise<string> {
    const { stdout } = await execa(this.#program, [program, ...args], { ...this.#user, cwd: this.#directory });
    return stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#running.map((server) => server.kill()));
    fs.rmSync(path.dirname(this.#directory), { recursive: true });
  }

  #data(port: number): string {
    return path.join(this.#directory, String(port));
  }

  /** @returns the settings that have a server use a certificate */
  #certify(port: number, { certificate, key }: CertifiedKey): string[] {
    for (const [name, content] of Object.entries({ "tls.crt": certificate, "tls.key": key })) {
      const file = path.join(this.#data(port), name);
      fs.writeFileSync(file, content, { mode: 0o600 });
      if (this.#user.uid !== undefined) fs.chownSync(file, this.#user.uid, this.#user.gid ?? this.#user.uid);
    }
    return ["ssl=on", "ssl_cert_file=tls.crt", "ssl_key_file=tls.key"];
  }

  async #serve(port: number, more: readonly string[] = []): Promise<Server> {
    const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "jit=off", ...more];
    const options = settings.flatMap((setting) => ["-c", setting]);
    const running = execa(this.#program, ["postgres", "-D", this.#data(port), "-p", String(port), ...options], {
      ...this.#user,
      cwd: this.#directory,
      all: true,
      reject: false,
    });
    let output: string | undefined;
    void running.then(({ all }) => {
      output = all;
    });
    const server = {
      port,
      kill: async () => {
        running.kill("SIGKILL");
        await running;
      },
    };
    this.#running.push(server);
    await eventually(async () => {
      if (output !== undefined) throw new Error(`PostgreSQL does not start: ${output}`);
      await queryServer(server, "postgres", "SELECT");
    });
    return server;
  }
}

/** The options of PostgreSQL's programs that name a server. */
export function at({ port }: Server): string[] {
  return ["-h", "127.0.0.1", "-p", String(port), "-U", OWNER];
}

export async function queryServer<T>(
  { port }: Server,
  database: string,
  text: string,
  values: unknown[] = [],
): Promise<T[]> {
  const client = new Client({ host: "127.0.0.1", port, user: OWNER, database });
  await client.connect();
  try {
    return (await client.query(text, values)).rows as T[];
  } finally {
    await client.end();
  }
}
