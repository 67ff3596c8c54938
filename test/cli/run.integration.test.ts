import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useDirectory } from "../directories";
import { TestAuthority } from "../tls/test-authority";
import { writeKubeconfig } from "./kubeconfig";

const MAIN = path.resolve(__dirname, "../../dist/src/cli/main.js");

const directory = useDirectory();
beforeAll(() => writeKubeconfig(path.join(directory, "kubeconfig"), { token: "none" }));

/** Rejects with the exit code, and what was printed, of a command that fails; kills one that does not exit. */
const kindstack = (...words: string[]) => kindstackWith({}, ...words);
const kindstackWith = (variables: NodeJS.ProcessEnv, ...words: string[]) => {
  const paths = { KUBECONFIG: path.join(directory, "kubeconfig"), KINDSTACK_WORK_DIR: path.join(directory, "work") };
  const env = { ...process.env, ...paths, ...variables };
  return promisify(execFile)(process.execPath, [MAIN, ...words], { timeout: 120_000, env });
};
const failure = (text: string) => ({ code: 1, stderr: expect.stringContaining(text) });

describe("kindstack run", () => {
  it("exits when it cannot reach the API server", async () => {
    await expect(kindstack("run", "--http-port", "0")).rejects.toMatchObject(failure("did not answer"));
  });

  it("exits when what it is to protect matches no namespace, such as the value of Capsule's flag", async () => {
    const running = kindstackWith({ KINDSTACK_PROTECTED_NAMESPACES: "^.*[-.]system$" }, "run", "--http-port", "0");
    const text = 'KINDSTACK_PROTECTED_NAMESPACES: "^.*[-.]system$" matches no namespace\'s name';
    await expect(running).rejects.toMatchObject(failure(text));
  });

  it("exits when the times of its Leases do not fit", async () => {
    const running = kindstack("run", "--http-port", "0", "--leader-elect", "--lease-duration", "1");
    const stderr = "kindstack: --lease-duration must be longer than --renew-deadline\n";
    await expect(running).rejects.toMatchObject({ code: 1, stderr });
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
    const proxy = kindstack("proxy", ...files, option, port, other, "0");
    await expect(proxy).rejects.toMatchObject(failure("EADDRINUSE"));
  });
});
