import { type CertifiedKey, createAuthority, issueCertificate } from "../../src/tls/certificate";

const HOUR_MS = 3_600_000;

/** A CA, and what it certifies. */
export class TestAuthority {
  constructor(readonly own: CertifiedKey) {}

  static async create(): Promise<TestAuthority> {
    return new TestAuthority(await createAuthority("test", new Date(Date.now() + HOUR_MS)));
  }

  user(name: string, group?: string, notAfter = new Date(Date.now() + HOUR_MS)): Promise<CertifiedKey> {
    const subject = { CN: name, ...(group !== undefined && { O: group }) };
    return issueCertificate(this.own, { subject, usages: ["client"], notAfter });
  }

  server(name = "server"): Promise<CertifiedKey> {
    return issueCertificate(this.own, {
      subject: { CN: name },
      usages: ["server"],
      names: ["127.0.0.1", "localhost"],
      notAfter: new Date(Date.now() + HOUR_MS),
    });
  }
}
