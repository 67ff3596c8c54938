import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { freePort } from "../../src/dev/ports";
import { eventually } from "../../src/testing/eventually";
import { resolveBinary } from "../../src/toolchain/resolve";
import { testTools } from "../tools";

/** A server of an object store's protocol. In its folder, `buckets` has a folder for each bucket. */
interface Server {
  tool: "versitygw" | "fake-gcs-server";
  args(port: number, folder: string): string[];
  /** What the server reads from its environment. */
  environment: Record<string, string>;
  /** What a client is given, as an operator is. */
  credentials(port: number): Record<string, string>;
  url(port: number, bucket: string): string;
}

const SERVERS = {
  s3: {
    tool: "versitygw",
    args: (port, folder) => {
      const gateway = ["--port", `127.0.0.1:${port}`, "--quiet"];
      return [...gateway, "posix", "--sidecar", path.join(folder, "metadata"), path.join(folder, "buckets")];
    },
    environment: { ROOT_ACCESS_KEY: "kindstack", ROOT_SECRET_KEY: "the-secret-key" },
    credentials: () => ({
      AWS_ACCESS_KEY_ID: "kindstack",
      AWS_SECRET_ACCESS_KEY: "the-secret-key",
      AWS_REGION: "us-east-1",
    }),
    url: (port, bucket) => `s3://${bucket}?endpoint=http://127.0.0.1:${port}&s3ForcePathStyle=true`,
  },
  gs: {
    tool: "fake-gcs-server",
    args: (port, folder) => {
      const host = "127.0.0.1";
      const listen = ["-scheme", "http", "-host", host, "-port", `${port}`, "-public-host", `${host}:${port}`];
      return [
        ...listen,
        "-backend",
        "filesystem",
        "-filesystem-root",
        path.join(folder, "buckets"),
        "-log-level",
        "warn",
      ];
    },
    environment: {},
    credentials: (port) => ({ STORAGE_EMULATOR_HOST: `127.0.0.1:${port}`, GOOGLE_OAUTH_ACCESS_TOKEN: "any" }),
    url: (_port, bucket) => `gs://${bucket}`,
  },
} as const satisfies Record<string, Server>;

export type Scheme = keyof typeof SERVERS;
export const SCHEMES = Object.keys(SERVERS) as Scheme[];

/** An object store of a test's own, with empty buckets. */
export class ObjectStore {
  readonly #folder = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-object-store-"));
  readonly #server: Server;
  #process: ChildProcess | undefined;
  #port = 0;

  constructor(scheme: Scheme) {
    this.#server = SERVERS[scheme];
  }

  async open(buckets: readonly string[]): Promise<void> {
    for (const bucket of buckets) fs.mkdirSync(path.join(this.#folder, "buckets", bucket), { recursive: true });
    fs.mkdirSync(path.join(this.#folder, "metadata"));
    const file = await resolveBinary(testTools[this.#server.tool]);
    this.#port = await freePort();
    const child = spawn(file, this.#server.args(this.#port, this.#folder), {
      env: { ...process.env, ...this.#server.environment },
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#process = child;
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    await eventually(() => fetch(`http://127.0.0.1:${this.#port}/`)).catch((cause: unknown) => {
      throw new Error(`${this.#server.tool} does not answer: ${said}`, { cause });
    });
  }

  /** What a client of a bucket has in its environment. */
  environment(bucket: string): Record<string, string> {
    return {
      PULUMI_BACKEND_URL: this.#server.url(this.#port, bucket),
      ...this.#server.credentials(this.#port),
    };
  }

  async close(): Promise<void> {
    if (this.#process !== undefined && this.#process.exitCode === null) {
      this.#process.kill();
      await once(this.#process, "exit");
    }
    fs.rmSync(this.#folder, { recursive: true, force: true });
  }
}
