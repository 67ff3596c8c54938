import { describe, expect, it, onTestFinished, vi } from "vitest";
import { renderPlugins } from "../../src/cli/plugins";

const kinds = [
  {
    kind: "apikeys.example.com",
    plugins: [
      { name: "keyring", package: "kinds", file: "/plugins/pulumi-resource-keyring" },
      { name: "random", version: "4.18.0", package: "@pulumi/random" },
    ],
  },
];

describe("kindstack plugins", () => {
  it("shows what each kind needs, and where it is", () => {
    expect(renderPlugins({ kinds }).split("\n")).toEqual([
      "KIND                 PLUGIN   VERSION  NAMED BY        FILE",
      "apikeys.example.com  keyring  any      kinds           /plugins/pulumi-resource-keyring",
      "apikeys.example.com  random   4.18.0   @pulumi/random  missing",
    ]);
  });

  it("shows the processes of the operator that was asked", () => {
    const startedAt = "2026-01-01T00:00:00.000000001Z";
    const used = { updates: 7, inUse: 1, memoryBytes: 96 * 2 ** 20, state: "used" };
    const process = { name: "keyring", pid: 42, startedAt, ...used };
    vi.useFakeTimers({ now: Date.parse("2026-01-01T00:01:30Z"), toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    expect(renderPlugins({ kinds: [], processes: [process] }).split("\n")).toEqual([
      "no kind's package names a plugin",
      "",
      "PROCESS OF  VERSION  PID  AGE   UPDATES  MEMORY  STATE",
      "keyring              42   90 s  7        96 MiB  used",
    ]);
    expect(renderPlugins({ kinds, processes: [] })).toContain("no process of a plugin runs");
  });
});
