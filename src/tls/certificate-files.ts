import fs from "node:fs/promises";
import tls from "node:tls";
import { TerminalError } from "../../providers/errors";

/** Reads the certificate of a server and its key. @throws TerminalError `Misconfigured` when they do not fit together */
export async function readServingCertificate(
  certFile: string,
  keyFile: string,
): Promise<{ cert: string; key: string }> {
  const [cert, key] = [await fs.readFile(certFile, "utf8"), await fs.readFile(keyFile, "utf8")];
  try {
    tls.createSecureContext({ cert, key });
  } catch (error) {
    throw new TerminalError("Misconfigured", `${certFile} and ${keyFile} are not a certificate and its key: ${error}`);
  }
  return { cert, key };
}
