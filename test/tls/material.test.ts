import { X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { caBundleOf, isUsable, type Renewal, renew, type TlsMaterial } from "../../src/tls/material";

const DAY = 86_400_000;
const start = Date.now();
const at = (days: number, more: Partial<Renewal> = {}): Renewal => ({
  name: "test-ca",
  names: ["operator.example.svc", "127.0.0.1"],
  lifetimes: { caMs: 90 * DAY, servingMs: 30 * DAY },
  now: start + days * DAY,
  nextIsKnown: false,
  ...more,
});
const parse = (certificate: string) => new X509Certificate(certificate);

describe("the material of a TLS server", () => {
  it("is made of nothing: a CA, and a certificate that it signed for all names", async () => {
    const material = await renew(undefined, at(0));

    const serving = parse(material.serving.certificate);
    expect(serving.verify(parse(material.ca.certificate).publicKey)).toBe(true);
    expect(serving.checkHost("operator.example.svc")).toBe("operator.example.svc");
    expect(serving.checkIP("127.0.0.1")).toBe("127.0.0.1");
    expect(isUsable(material)).toBe(true);
    expect(caBundleOf(material).match(/BEGIN CERTIFICATE/g)).toHaveLength(1);
  });

  it("is the same object while nothing is due", async () => {
    const material = await renew(undefined, at(0));

    expect(await renew(material, at(19))).toBe(material);
  });

  it("gets a new certificate of the same CA when a third of its time is left", async () => {
    const material = await renew(undefined, at(0));

    const renewed = await renew(material, at(21));

    expect(renewed.serving.certificate).not.toBe(material.serving.certificate);
    expect(renewed.ca).toBe(material.ca);
    expect(parse(renewed.serving.certificate).verify(parse(material.ca.certificate).publicKey)).toBe(true);
  });

  it("gets a new certificate for a new name, and keeps the names that other replicas have", async () => {
    const material = await renew(undefined, at(0));

    const renewed = await renew(material, at(1, { names: ["other.example.svc"] }));

    const serving = parse(renewed.serving.certificate);
    for (const name of ["other.example.svc", "operator.example.svc"]) expect(serving.checkHost(name)).toBe(name);
    expect(await renew(renewed, at(1))).toBe(renewed);
  });

  it("changes its CA in three steps, at each of which the bundle trusts what is shown before and after", async () => {
    const first = await renew(undefined, at(0));
    const published = await renew(first, at(61));
    const waiting = await renew(published, at(62));
    const promoted = await renew(published, at(62, { nextIsKnown: true }));
    const over = await renew(promoted, at(91));

    expect(published.ca).toBe(first.ca);
    expect(waiting).toBe(published);
    expect(promoted.ca).toBe(published.next);
    expect(promoted.previous).toBe(first.ca.certificate);
    for (const [shown, trusting] of [
      [first, published],
      [published, published],
      [published, promoted],
      [promoted, published],
    ] as [TlsMaterial, TlsMaterial][]) {
      expect(isTrusted(shown, trusting)).toBe(true);
    }
    expect(over.previous).toBeUndefined();
    expect(isTrusted(over, over)).toBe(true);
  });

  it("has no certificate that outlives its CA, and does not make new ones for that", async () => {
    const material = await renew(undefined, at(0));
    const late = await renew(material, at(70));

    expect(Date.parse(parse(late.serving.certificate).validTo)).toBeLessThanOrEqual(
      Date.parse(parse(late.ca.certificate).validTo),
    );
    const later = await renew(late, at(85));
    expect(await renew(later, at(86))).toBe(later);
  });

  it("is made again when its CA has expired, by the next one if there is one", async () => {
    const material = await renew(undefined, at(0));
    const published = await renew(material, at(61));

    expect((await renew(material, at(95))).ca).not.toEqual(material.ca);
    expect((await renew(published, at(95))).ca).toBe(published.next);
  });

  it("is not usable when its parts do not belong together or are no certificates", async () => {
    const [one, other] = [await renew(undefined, at(0)), await renew(undefined, at(0))];

    expect(isUsable({ ...one, serving: other.serving })).toBe(false);
    expect(isUsable({ ...one, serving: { ...one.serving, key: other.serving.key } })).toBe(false);
    expect(isUsable({ ...one, ca: { certificate: "rubbish", key: "rubbish" } })).toBe(false);
  });
});

function isTrusted({ serving }: TlsMaterial, trusting: TlsMaterial): boolean {
  const authorities = caBundleOf(trusting).match(/-----BEGIN.*?END CERTIFICATE-----/gs) ?? [];
  return authorities.some((ca) => parse(serving.certificate).verify(parse(ca).publicKey));
}
