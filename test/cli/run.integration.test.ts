import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useDirectory } from "../directories";
import { TestAuthority } from "../tls/test-authority";

const MAIN = path.resolve(__dirname, "../../dist/src/cli/main.js");

const directory = useDirectory();
beforeAll(async () => {
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "none", cluster: { server: "https://127.0.0.1:1" } }],
    contexts: [{ name: "none", context: { cluster: "none", user: "none" } }],
    users: [{ name: "none", user: { token: "none" } }],
    "current-context": "none",
  };
  await writeFile(path.join(directory, "kubeconfig"), JSON.stringify(kubeconfig));
});

/** Rejects with the exit code, and what was printed, of a command that fails; kills one that does not exit. */
const kindstack = (...words: string[]) => kindstackWith({}, ...words);
const kindstackWith = (variables: NodeJS.ProcessEnv, ...words: string[]) =>
  promisify(execFile)(process.execPath, [MAIN, ...words], {
    timeout: 120_000,
    env: {
      ...process.env,
      KUBECONFIG: path.join(directory, "kubeconfig"),
      KINDSTACK_WORK_DIR: path.join(directory, "work"),
      ...variables,
    },
  });

describe("kindstack run", () => {
  it("exits when it cannot reach the API server", async () => {
    await expect(kindstack("run", "--http-port", "0")).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining("did not answer"),
    });
  });

  it("exits when what it is to protect matches no namespace, such as the value of Capsule's flag", async () => {
    const running = kindstackWith({ KINDSTACK_PROTECTED_NAMESPACES: "^.*[-.]system$" }, "run", "--http-port", "0");
    await expect(running).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('KINDSTACK_PROTECTED_NAMESPACES: "^.*[-.]system$" matches no namespace\'s name'),
    });
  });

  it("exits when the times of its Leases do not fit", async () => {
    const words = ["--http-port", "0", "--leader-elect", "--lease-duration", "1"];
    await expect(kindstack("run", ...words)).rejects.toMatchObject({
      code: 1,
      stderr: "kindstack: --lease-duration must be longer than --renew-deadline\n",
    });
  });
});

describe("kindstack proxy", () => {
  let occupied: Server;
  let files: string[];
  beforeAll(async () => {
    occupied = createServer().listen(0, "127.0.0.1");
    await once(occupied, "listening");
    const authority = await TestAuthority.create();
    const { certificate, key } = await authority.server();
    const texts = { "tls-cert-file": certificate, "tls-key-file": key, "client-ca-file": authority.own.certificate };
    const written = Object.entries(texts).map(async ([name, text]) => {
      await writeFile(path.join(directory, name), text);
      return [`--${name}`, path.join(directory, name)];
    });
    files = (await Promise.all(written)).flat();
  });
  afterAll(() => occupied.close());

  it.each([
    ["--port", "--http-port"],
    ["--http-port", "--port"],
  ])("exits when %s is in use", async (option, other) => {
    const port = String((occupied.address() as AddressInfo).port);
    await expect(kindstack("proxy", ...files, option, port, other, "0")).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining("EADDRINUSE"),
    });
  });
});
