import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { operatorAt } from "../../src/cli/server-options";
import { testDirectory } from "../directories";
import { writeKubeconfig } from "./kubeconfig";

let folder: string;

beforeEach(() => {
  folder = testDirectory();
  vi.stubEnv("KINDSTACK_TOKEN", "");
  vi.stubEnv("KUBECONFIG", path.join(folder, "kubeconfig"));
});
afterEach(() => {
  vi.unstubAllEnvs();
});

function ask(user: object) {
  writeKubeconfig(path.join(folder, "kubeconfig"), user);
  return operatorAt({ server: "https://localhost:9444" }, new AbortController().signal);
}

describe("the token for an operator", () => {
  it("is the kubeconfig's where none is named", async () => {
    expect(await ask({ token: "of the user" }).catch((error: Error) => error.message)).toContain("has none");
    expect(await ask({ token: "of-the-user" })).toMatchObject({ token: "of-the-user" });
  });

  it("is missing with the reason of the plugin that should give it", async () => {
    const script = "echo 'log in again' >&2; exit 1";
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "sh", args: ["-c", script] };
    await expect(ask({ exec })).rejects.toThrow(
      /no token for --server: .* the current kubeconfig gives none: .*log in again/,
    );
  });
});
