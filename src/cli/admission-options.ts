import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import type { Logger } from "pino";
import { TerminalError } from "../../providers/errors";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import type { AnyKind } from "../../stacks/contract/kind";
import { listenAddress, operatorNamespace } from "../config";
import type { Listener } from "../http/server";
import { httpsUrl, wholeNumber } from "./parse-options";

export interface AdmissionOptions {
  admissionPort?: number;
  admissionHost: string;
  admissionUrl?: string;
  admissionService?: string;
  admissionClientCaFile?: string;
  admissionOwner?: string;
}

/** Port of the Service through which the API server reaches the operator. */
const SERVICE_PORT = 443;

export function withAdmissionOptions(command: Command): Command {
  return command
    .option(
      "--admission-port <port>",
      "serve admission on this port, 0 for any free one (default: not served)",
      wholeNumber,
    )
    .option("--admission-host <address>", "listen address", listenAddress(process.env))
    .option("--admission-url <url>", "URL for the API server (default: the host and port)", httpsUrl)
    .option("--admission-service <name>", "in place of the URL: a Service in the operator's namespace")
    .option(
      "--admission-client-ca-file <file>",
      "CA of the API servers' client certificates, as PEM; others are refused (default: no client certificate needed)",
    )
    .option(
      "--admission-owner <clusterrole>",
      "ClusterRole that owns all admission objects, so that they are deleted with it",
    );
}

/** Serves admission for the kinds; does nothing without a port. @throws TerminalError `Misconfigured` */
export async function serveAdmission(
  options: AdmissionOptions,
  kinds: readonly AnyKind[],
  client: KubernetesClient,
  logger: Logger,
): Promise<Listener | undefined> {
  const { admissionPort: port, admissionHost: host, admissionUrl: url, admissionService: name } = options;
  if (port === undefined) return undefined;
  // Loaded here: the certificate library takes memory, and only admission needs it.
  const { startAdmission } = await import("../admission/admission.js");
  const namespace = operatorNamespace(process.env);
  const location = name !== undefined ? { service: { namespace, name, port: SERVICE_PORT } } : url && { url };
  if (!location && ["0.0.0.0", "::"].includes(host)) {
    throw new TerminalError(
      "Misconfigured",
      `--admission-host ${host} is not an address that the API server can call; set --admission-service or --admission-url`,
    );
  }
  const { admissionOwner: ownerRole, admissionClientCaFile: caFile } = options;
  const clientCa = caFile === undefined ? undefined : await readFile(caFile, "utf8");
  return startAdmission({
    kinds,
    client,
    logger,
    port,
    host,
    namespace,
    ownerRole,
    clientCa,
    ...(location && { location }),
  });
}
