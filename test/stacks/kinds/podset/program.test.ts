import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../../../providers/kubernetes/client";
import { type Registered, registeredBy } from "../../../../src/testing/registered";
import { type KindObject, objectId } from "../../../../stacks/contract/object";
import { podSetProgram } from "../../../../stacks/kinds/podset/program";
import type { PodSetSpec } from "../../../../stacks/kinds/podset/schema";
import { acme } from "../../../objects";
import { pod, podSetObject } from "./objects";

const register = (object: KindObject<PodSetSpec>, owned: LiveObject[] = []) =>
  registeredBy(podSetProgram, object, { owner: acme, owned, recorded: new Set(owned.map(objectId)) });
const namesIn = (pods: Registered[]) => pods.map(({ inputs }) => inputs.manifest.metadata.name ?? "");

describe("the program of a PodSet", () => {
  it("makes as many Pods as are wanted, each with a name of its own", async () => {
    const pods = await register(podSetObject(5));
    const names = namesIn(pods);
    expect(new Set(names).size).toBe(5);
    for (const name of names) expect(name).toMatch(/^web-pod-[a-z0-9]{5}$/);
    expect(pods.map(({ name }) => name)).toEqual(names.map((name) => `pod/${name}`));
  });

  it("makes the Pods of the operator that it is from, and adopts none", async () => {
    const [only] = await register(podSetObject(1));
    expect(only?.inputs).toMatchObject({
      adopt: false,
      manifest: {
        metadata: {
          generateName: "web-pod-",
          namespace: "default",
          labels: { app: "web", version: "v0.1" },
          ownerReferences: [{ kind: "PodSet", name: "web", uid: "uid-web", controller: true }],
        },
        spec: { containers: [{ name: "busybox", image: "busybox", command: ["sleep", "3600"] }] },
      },
    });
  });

  it("keeps those that count and makes only what is missing", async () => {
    const names = namesIn(await register(podSetObject(3), [pod("kept"), pod("failed", { phase: "Failed" })]));
    expect(names).toHaveLength(3);
    expect(names).toContain("kept");
    expect(names).not.toContain("failed");
  });

  it("names what is missing the same each time, and never as a Pod that was there", async () => {
    const names = async (owned: LiveObject[]) => namesIn(await register(podSetObject(2), owned));
    expect(await names([])).toEqual(await names([]));
    const [first = ""] = await names([]);
    const [replacement] = await names([pod(first, { phase: "Failed" })]);
    expect([...(await names([])), first]).not.toContain(replacement);
  });

  it("registers none when none are wanted, so that all go", async () => {
    expect(await register(podSetObject(0), [pod("a"), pod("b")])).toEqual([]);
  });

  it.each([
    ["of 63 characters", "x".repeat(63)],
    ["that is cut behind a hyphen", `${"x".repeat(57)}-yyyyy`],
    ["that is cut behind a dot", `${"x".repeat(57)}.yyyyy`],
    ["of one character", "0"],
  ])("makes valid names for a PodSet with a name %s", async (_, name) => {
    const names = namesIn(await register(podSetObject(3, name)));
    for (const name of names) {
      // As the API server's own generated names: a DNS subdomain that also fits a host name.
      expect(name.length).toBeLessThanOrEqual(63);
      expect(name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
    }
    expect(new Set(names).size).toBe(3);
  });
});
