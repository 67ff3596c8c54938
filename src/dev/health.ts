import { Agent, request } from "undici";
import type { CertifiedKey } from "../tls/certificate";

const TIMEOUT_MS = 2_000;

export async function answersOk(url: string, tls?: { ca: CertifiedKey; client: CertifiedKey }): Promise<boolean> {
  const connect = tls ? { ca: tls.ca.certificate, cert: tls.client.certificate, key: tls.client.key } : {};
  const dispatcher = new Agent({ allowH2: false, connect, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
  try {
    const { statusCode, body } = await request(url, { dispatcher });
    await body.dump();
    return statusCode === 200;
  } finally {
    await dispatcher.destroy();
  }
}
