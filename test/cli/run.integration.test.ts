import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const MAIN = path.resolve(__dirname, "../../dist/src/cli/main.js");

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "kindstack-run-"));
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
afterAll(() => rm(directory, { recursive: true }));

/** Rejects with the exit code, and what was printed, of an operator that fails; kills one that does not exit. */
const run = (...words: string[]) =>
  promisify(execFile)(process.execPath, [MAIN, "run", "--http-port", "0", ...words], {
    timeout: 30_000,
    env: {
      ...process.env,
      KUBECONFIG: path.join(directory, "kubeconfig"),
      KINDSTACK_WORK_DIR: path.join(directory, "work"),
    },
  });

describe("kindstack run", () => {
  it("exits when it cannot reach the API server", async () => {
    await expect(run()).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining("did not answer") });
  });

  it("exits when the times of its Leases do not fit", async () => {
    await expect(run("--leader-elect", "--lease-duration", "1")).rejects.toMatchObject({
      code: 1,
      stderr: "kindstack: --lease-duration must be longer than --renew-deadline\n",
    });
  });
});
