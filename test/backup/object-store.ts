import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { freePort } from "../../src/dev/ports";
import { eventually } from "../../src/testing/eventually";
import type { CertifiedKey } from "../../src/tls/certificate";
import { resolveBinary } from "../../src/toolchain/resolve";
import { testTools } from "../tools";

/** A server of an object store's protocol. In its folder, `buckets` has a folder for each bucket. */
interface Server {
  tool: "versitygw" | "fake-gcs-server";
  args(port: number, folder: string): string[];
  /** With it, the server speaks HTTPS. */
  tlsArgs?(certificateFile: string, keyFile: string): string[];
  /** What the server reads from its environment. */
  environment: Record<string, string>;
  /** What a client is given, as an operator is. */
  credentials(port: number): Record<string, string>;
  url(port: number, bucket: string, protocol: "http" | "https"): string;
}

const SERVERS = {
  s3: {
    tool: "versitygw",
    args: (port, folder) => {
      const gateway = ["--port", `127.0.0.1:${port}`, "--quiet"];
      return [...gateway, "posix", "--sidecar", path.join(folder, "metadata"), path.join(folder, "buckets")];
    },
    tlsArgs: (certificateFile, keyFile) => ["--cert", certificateFile, "--key", keyFile],
    environment: { ROOT_ACCESS_KEY: "kindstack", ROOT_SECRET_KEY: "the-secret-key" },
    credentials: () => ({
      AWS_ACCESS_KEY_ID: "kindstack",
      AWS_SECRET_ACCESS_KEY: "the-secret-key",
      AWS_REGION: "us-east-1",
      AWS_CA_BUNDLE: "", // the machine's would replace all other CAs
    }),
    url: (port, bucket, protocol) => `s3://${bucket}?endpoint=${protocol}://127.0.0.1:${port}&s3ForcePathStyle=true`,
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
  readonly #certified: CertifiedKey | undefined;
  #port = 0;

  /** @param certified of a server that speaks HTTPS */
  constructor(scheme: Scheme, certified?: CertifiedKey) {
    this.#server = SERVERS[scheme];
    this.#certified = certified;
  }

  async open(buckets: readonly string[]): Promise<void> {
    for (const bucket of buckets) fs.mkdirSync(path.join(this.#folder, "buckets", bucket), { recursive: true });
    fs.mkdirSync(path.join(this.#folder, "metadata"));
    const file = await resolveBinary(testTools[this.#server.tool]);
    this.#port = await freePort();
    const child = spawn(file, [...this.#tlsArgs(), ...this.#server.args(this.#port, this.#folder)], {
      env: { ...process.env, ...this.#server.environment },
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#process = child;
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    await eventually(() => once(net.connect(this.#port, "127.0.0.1"), "connect")).catch((cause: unknown) => {
      throw new Error(`${this.#server.tool} does not answer: ${said}`, { cause });
    });
  }

  #tlsArgs(): string[] {
    if (this.#certified === undefined) return [];
    const files = (["certificate", "key"] as const).map((part) => {
      const file = path.join(this.#folder, part);
      fs.writeFileSync(file, this.#certified?.[part] ?? "");
      return file;
    });
    return this.#server.tlsArgs?.(files[0] ?? "", files[1] ?? "") ?? [];
  }

  /** What a client of a bucket has in its environment. */
  environment(bucket: string): Record<string, string> {
    return {
      PULUMI_BACKEND_URL: this.#server.url(this.#port, bucket, this.#certified === undefined ? "http" : "https"),
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
