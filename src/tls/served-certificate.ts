import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import tls from "node:tls";
import type { Logger } from "pino";
import { errorMessageOf, TerminalError } from "../../providers/errors";
import { createAuthority, issueCertificate } from "./certificate";
import { type Polled, poll } from "./poll";

export interface SecureContext {
  cert: string;
  key: string;
}

/** A certificate that is replaced before it expires. */
export type ServedCertificate = Polled<SecureContext>;

const DAY_MS = 86_400_000;
const LIFETIME_MS = 90 * DAY_MS;
const RENEWAL_MS = 24 * DAY_MS; // longer timers overflow
const POLL_MS = 60_000;

export async function readServingCertificate(certFile: string, keyFile: string): Promise<SecureContext> {
  const [cert, key] = [await fs.readFile(certFile, "utf8"), await fs.readFile(keyFile, "utf8")];
  try {
    tls.createSecureContext({ cert, key });
  } catch (error) {
    throw new TerminalError("Misconfigured", `${certFile} and ${keyFile} are not a certificate and its key: ${error}`);
  }
  return { cert, key };
}

/** The certificate in a folder, `tls.crt` and `tls.key`, as a mounted Secret has them. */
export async function certificateFiles(
  option: string,
  folder: string,
  logger: Logger,
  intervalMs = POLL_MS,
): Promise<ServedCertificate> {
  const read = () => readServingCertificate(path.join(folder, "tls.crt"), path.join(folder, "tls.key"));
  return poll(read, { intervalMs, logger }).catch((error: unknown) => {
    throw new TerminalError("Misconfigured", `${option}: ${errorMessageOf(error)}`);
  });
}

/** A new certificate for this process only: it encrypts, but authenticates nothing. */
export function ownCertificate(logger: Logger): Promise<ServedCertificate> {
  return poll(issue, { intervalMs: RENEWAL_MS, logger });
}

async function issue(): Promise<SecureContext> {
  const notAfter = new Date(Date.now() + LIFETIME_MS);
  const { certificate, key } = await issueCertificate(await createAuthority("kindstack-metrics", notAfter), {
    subject: { CN: "kindstack-metrics" },
    usages: ["server"],
    names: ["localhost", "127.0.0.1", os.hostname()],
    notAfter,
  });
  return { cert: certificate, key };
}
