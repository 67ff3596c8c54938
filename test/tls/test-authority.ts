import {
  type Authority,
  type CertifiedKey,
  createAuthority,
  issueCertificate,
  openAuthority,
} from "../../src/tls/certificate";

const HOUR_MS = 3_600_000;

/** A CA, and what it certifies. */
export class TestAuthority {
  private constructor(
    readonly own: CertifiedKey,
    private readonly authority: Authority,
  ) {}

  static async create(): Promise<TestAuthority> {
    return TestAuthority.open(await createAuthority("test", new Date(Date.now() + HOUR_MS)));
  }

  static async open(own: CertifiedKey): Promise<TestAuthority> {
    return new TestAuthority(own, await openAuthority(own));
  }

  user(name: string, group?: string, notAfter = new Date(Date.now() + HOUR_MS)): Promise<CertifiedKey> {
    const subject = { CN: name, ...(group !== undefined && { O: group }) };
    return issueCertificate(this.authority, { subject, usages: ["client"], notAfter });
  }

  server(name = "server"): Promise<CertifiedKey> {
    return issueCertificate(this.authority, {
      subject: { CN: name },
      usages: ["server"],
      names: ["127.0.0.1", "localhost"],
      notAfter: new Date(Date.now() + HOUR_MS),
    });
  }
}
