import fs from "node:fs";
import path from "node:path";
import { kubeconfigOf } from "../../src/dev/pki";
import {
  type CertificateRequest,
  type CertifiedKey,
  createAuthority,
  issueCertificate,
} from "../../src/tls/certificate";

const DAY_MS = 86_400_000;
const SERVICE = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];

/** A certificate and its key, as files. */
export interface CredentialFiles {
  cert: string;
  key: string;
}

/** The cluster's CA, and certificates and kubeconfigs of it in a folder. */
export class NodePki {
  readonly ca: string;
  readonly caKey: string;

  private constructor(
    readonly directory: string,
    readonly server: string,
    readonly authority: CertifiedKey,
  ) {
    ({ cert: this.ca, key: this.caKey } = this.#write("ca", authority));
  }

  /** @param server the API server's URL */
  static async create(directory: string, server: string): Promise<NodePki> {
    fs.mkdirSync(directory, { recursive: true });
    return new NodePki(directory, server, await createAuthority("kubernetes", inDays(30)));
  }

  /** Of a server. It is a client as well. */
  async serving(
    name: string,
    subject: CertificateRequest["subject"],
    names: readonly string[],
  ): Promise<CredentialFiles> {
    return this.#write(name, await this.#issue({ subject, usages: ["server", "client"], names }));
  }

  apiServer(addresses: readonly string[]): Promise<CredentialFiles> {
    return this.serving("apiserver", { CN: "kube-apiserver" }, [...SERVICE, "localhost", ...addresses]);
  }

  /** The key that signs tokens, and a certificate that has its public one. */
  async signing(name: string): Promise<CredentialFiles> {
    return this.#write(name, await createAuthority(name, inDays(30)));
  }

  /** @returns the file of a kubeconfig */
  async kubeconfig(name: string, subject: CertificateRequest["subject"]): Promise<string> {
    const file = this.kubeconfigOf(name);
    const user = await this.#issue({ subject, usages: ["client"] });
    fs.writeFileSync(file, kubeconfigOf(this.server, this.authority, user).exportConfig());
    return file;
  }

  kubeconfigOf(name: string): string {
    return path.join(this.directory, `${name}.kubeconfig`);
  }

  #issue(request: Omit<CertificateRequest, "notAfter">): Promise<CertifiedKey> {
    return issueCertificate(this.authority, { ...request, notAfter: inDays(30) });
  }

  #write(name: string, { certificate, key }: CertifiedKey): CredentialFiles {
    const files = { cert: path.join(this.directory, `${name}.crt`), key: path.join(this.directory, `${name}.key`) };
    fs.writeFileSync(files.cert, certificate);
    fs.writeFileSync(files.key, key);
    return files;
  }
}

function inDays(days: number): Date {
  return new Date(Date.now() + days * DAY_MS);
}
