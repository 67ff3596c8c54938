import { pino } from "pino";
import { afterEach, describe, expect, it, vi } from "vitest";
import { known, type ResourceType } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { openServingCertificate, type ServingCertificateOptions } from "../../src/tls/serving-certificate";
import { TestCluster } from "../providers/kubernetes/test-cluster";

const SECRET: ResourceType = { apiVersion: "v1", kind: "Secret", plural: "secrets", namespaced: true };
const DAY = 86_400_000;
const cluster = TestCluster.use();
const opened: { close(): void }[] = [];

afterEach(() => {
  vi.useRealTimers();
  for (const certificate of opened.splice(0)) certificate.close();
});

/** Moves the clock of the certificates on. */
function pass(days: number): void {
  const now = Date.now();
  vi.useFakeTimers({ toFake: ["Date"] });
  vi.setSystemTime(now + days * DAY);
}

async function open(name: string, options: Partial<ServingCertificateOptions> = {}) {
  const certificate = await openServingCertificate({
    client: cluster.client,
    namespace: cluster.namespace,
    name,
    dnsNames: ["127.0.0.1"],
    logger: pino({ level: "silent" }),
    pollMs: 20,
    ...options,
  });
  opened.push(certificate);
  return certificate;
}

describe("replicas that open a certificate", () => {
  it("at the same time all have the one that was stored first", async () => {
    const replicas = await Promise.all(Array.from({ length: 5 }, () => open("race")));

    const [first, ...others] = replicas.map(({ current, caBundle }) => ({ ...current, caBundle }));
    for (const other of others) expect(other).toEqual(first);
  });

  it("go through the change of a CA together, and a listener hears of each step", async () => {
    const options = {
      lifetimes: { caMs: 90 * DAY, servingMs: 60 * DAY },
      propagationMs: DAY,
    };
    const [one, other] = [await open("rotation", options), await open("rotation", options)];
    const before = one.caBundle;
    const heard: string[] = [];
    await one.follow(() => void heard.push(one.caBundle));

    pass(70);
    await eventually(() => expect([one.caBundle, other.caBundle].every((text) => text.startsWith(before))).toBe(true));
    await eventually(() => expect(one.caBundle.length).toBeGreaterThan(before.length * 1.5));
    await eventually(() => expect(heard).toContain(one.caBundle));
    const published = one.caBundle;
    pass(2);
    await eventually(() => expect(one.caBundle).not.toBe(published));
    await eventually(() => expect(other.caBundle).toBe(one.caBundle));

    expect(one.caBundle.endsWith(before)).toBe(true);
    expect(other.current).toEqual(one.current);
  });

  it("put back what a user deleted or damaged, as it was", async () => {
    const certificate = await open("damage");
    const { cert } = certificate.current;
    const stored = async () => {
      const data = (await known(cluster.client.get(SECRET, "damage", cluster.namespace)))?.data as Record<
        string,
        string
      >;
      return Buffer.from(data?.["tls.crt"] ?? "", "base64").toString();
    };

    await cluster.client.mergePatch(SECRET, "damage", cluster.namespace, { data: { "tls.crt": "cnViYmlzaA==" } });
    await eventually(async () => expect(await stored()).toBe(cert));
    await cluster.client.delete(SECRET, "damage", cluster.namespace);
    await eventually(async () => expect(await stored()).toBe(cert));

    expect(certificate.current.cert).toBe(cert);
  });

  it("wait with a new CA for a listener that could not make it known", async () => {
    const certificate = await open("deaf", {
      lifetimes: { caMs: 90 * DAY, servingMs: 60 * DAY },
      propagationMs: DAY,
    });
    const before = certificate.caBundle;
    let calls = 0;
    await certificate.follow(() => {
      calls++;
      if (calls > 1) throw new Error("unreachable");
    });

    pass(70);
    await eventually(() => expect(certificate.caBundle).not.toBe(before));
    pass(10);
    const called = calls;
    await eventually(() => expect(calls).toBeGreaterThan(called + 3));

    expect(certificate.caBundle.startsWith(before)).toBe(true);
  });
});
