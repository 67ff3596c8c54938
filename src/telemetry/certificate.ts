import os from "node:os";
import path from "node:path";
import { setInterval } from "node:timers";
import { errorMessageOf, TerminalError } from "../../providers/errors";
import { createAuthority, issueCertificate, openAuthority } from "../tls/certificate";
import { readServingCertificate } from "../tls/certificate-files";
import type { ServingCertificate } from "../tls/serving-certificate";

/** What a TLS server shows, which changes before it expires. */
export type ServedCertificate = Omit<ServingCertificate, "caBundle" | "sharedSecrets">;
type SecureContext = ServedCertificate["secureContext"];

const DAY_MS = 86_400_000;
const LIFETIME_MS = 90 * DAY_MS;
const RENEWAL_MS = 24 * DAY_MS; // longer timers overflow
const POLL_MS = 60_000;

/**
 * The certificate in a folder, `tls.crt` and `tls.key`, as a mounted Secret has them. It is read again every minute;
 * what cannot be used is told to `failed`, and the one before stays.
 *
 * @throws TerminalError `Misconfigured` when there is none that could be used
 */
export async function certificateFiles(
  folder: string,
  { failed, pollMs = POLL_MS }: { failed: (error: unknown) => void; pollMs?: number },
): Promise<ServedCertificate> {
  const read = () => readServingCertificate(path.join(folder, "tls.crt"), path.join(folder, "tls.key"));
  const first = await read().catch((error: unknown) => {
    throw new TerminalError("Misconfigured", `--metrics-certificate: ${errorMessageOf(error)}`);
  });
  return renewed(first, read, pollMs, failed);
}

/** A certificate that is made here and now, for this process alone: it hides what is sent, and proves nothing. */
export function ownCertificate({ failed }: { failed: (error: unknown) => void }): Promise<ServedCertificate> {
  return issue().then((first) => renewed(first, issue, RENEWAL_MS, failed));
}

async function issue(): Promise<SecureContext> {
  const notAfter = new Date(Date.now() + LIFETIME_MS);
  const authority = await openAuthority(await createAuthority("kindstack-metrics", notAfter));
  const { certificate, key } = await issueCertificate(authority, {
    subject: { CN: "kindstack-metrics" },
    usages: ["server"],
    names: ["localhost", "127.0.0.1", os.hostname()],
    notAfter,
  });
  return { cert: certificate, key };
}

function renewed(
  first: SecureContext,
  next: () => Promise<SecureContext>,
  intervalMs: number,
  failed: (error: unknown) => void,
): ServedCertificate {
  let current = first;
  const listeners: (() => void | Promise<void>)[] = [];
  const renew = async () => {
    const latest = await next();
    if (latest.cert === current.cert && latest.key === current.key) return;
    current = latest;
    for (const listener of listeners) await listener();
  };
  const timer = setInterval(() => void renew().catch(failed), intervalMs).unref();
  return {
    get secureContext() {
      return current;
    },
    async follow(listener) {
      listeners.push(listener);
      await listener();
    },
    close: () => clearInterval(timer),
  };
}
