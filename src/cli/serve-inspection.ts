import { join } from "node:path";
import { Option } from "commander";
import type { Logger } from "pino";
import { ProviderHost } from "../../providers/host/server";
import { providersOf } from "../../providers/index";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import { INSPECTION_SECRET } from "../../stacks/contract/inspection";
import type { AnyKind } from "../../stacks/contract/kind";
import type { Workspace } from "../automation/pulumi";
import { StackReader } from "../automation/stack-reader";
import { openWorkspace, type PulumiBinary } from "../automation/workspace";
import { inCluster, operatorNamespace, type StateConfig } from "../config";
import { wholeNumber } from "./numbers";

export interface InspectionOptions {
  previewPort?: number;
  previewHost: string;
  previewNames: string[];
  previewCertificate?: string;
}

/** How an operator serves previews to others. */
export function inspectionOptions(): Option[] {
  return [
    new Option(
      "--preview-port <port>",
      "serve previews, history, outputs and states on this port, over TLS, for accounts with the right to see them; " +
        "0 for any free one (default: not served)",
    ).argParser(wholeNumber),
    new Option("--preview-host <address>", "listen address").default(inCluster(process.env) ? "0.0.0.0" : "127.0.0.1"),
    new Option("--preview-names <names...>", "host names of its certificate").default(["localhost"]),
    new Option(
      "--preview-certificate <folder>",
      `folder with tls.crt and tls.key (default: a certificate in the Secret ${INSPECTION_SECRET})`,
    ),
  ];
}

interface Collaborators {
  kinds: readonly AnyKind[];
  client: KubernetesClient;
  pulumi: PulumiBinary;
  state: StateConfig;
  logger: Logger;
}

const TIMEOUT_MS = 5 * 60_000;

/** Serves inspections beside an operator, with a work directory and providers of their own; nothing without a port. */
export async function serveInspection(
  options: InspectionOptions,
  { kinds, client, pulumi, state, logger: parent }: Collaborators,
): Promise<{ port: number; close(): Promise<void> } | undefined> {
  const { previewPort: port, previewHost: host, previewNames: names, previewCertificate: folder } = options;
  if (port === undefined) return undefined;
  // Loaded here: TLS and tokens take memory, and only this needs it.
  const [{ startInspectionServer }, { Inspector }, { ClusterView }, { Authenticator }, certificates, serving] =
    await Promise.all([
      import("../preview/server.js"),
      import("../preview/inspector.js"),
      import("../preview/cluster-view.js"),
      import("../proxy/authenticate.js"),
      import("../telemetry/certificate.js"),
      import("../tls/serving-certificate.js"),
    ]);
  const logger = parent.child({ component: "inspection" });
  const failed = (error: unknown) => logger.warn({ err: error }, "certificate of previews could not be renewed");
  const tls =
    folder !== undefined
      ? await certificates.certificateFiles(folder, { failed })
      : await serving.openServingCertificate({
          client,
          namespace: operatorNamespace(process.env),
          name: INSPECTION_SECRET,
          dnsNames: names,
          logger,
        });
  const providerHost = new ProviderHost(providersOf(kinds));
  await providerHost.start();
  let workspace: Promise<Workspace> | undefined;
  const open = () => {
    workspace ??= openWorkspace({
      ...state,
      workDirectory: join(state.workDirectory, "inspection"),
      pulumi,
      environment: process.env,
      attachment: providerHost.attachment,
      log: logger,
    }).catch((error: unknown) => {
      workspace = undefined; // the next request tries again
      throw error;
    });
    return workspace;
  };
  const server = await startInspectionServer({
    port,
    host,
    tls,
    kinds,
    client,
    authenticator: new Authenticator({ client }),
    logger,
    inspector: async (signal) =>
      new Inspector({
        kinds,
        // One preview after the other: updates come first.
        reader: new StackReader({ workspace: await open(), host: providerHost, timeoutMs: TIMEOUT_MS }),
        cluster: await ClusterView.open(client),
        signal,
        notes: [],
      }),
  });
  logger.info({ previews: `${host}:${server.port}` }, "previews are served");
  return {
    port: server.port,
    async close() {
      tls.close();
      await server.close();
      await (await workspace?.catch(() => undefined))?.pulumi.close();
      providerHost.stop();
    },
  };
}
