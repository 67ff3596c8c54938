import { join } from "node:path";
import type { Command } from "commander";
import { INSPECTION_SECRET } from "../../stacks/contract/rbac";
import type { BackendOwnership } from "../backend/ownership";
import { listenAddress, operatorNamespace, type StateConfig } from "../config";
import type { Listener } from "../http/server";
import type { InspectionServerOptions } from "../preview/server";
import { type OpenStacks, openStacks } from "./open-stacks";
import { wholeNumber } from "./parse-options";

export interface PreviewServerOptions {
  previewPort?: number;
  previewHost: string;
  previewNames: string[];
  previewCertificate?: string;
}

export function withPreviewServerOptions(command: Command): Command {
  return command
    .option(
      "--preview-port <port>",
      "serve previews, history, outputs and states on this port, over TLS, for accounts with the right to see them; " +
        "0 for any free one (default: not served)",
      wholeNumber,
    )
    .option("--preview-host <address>", "listen address", listenAddress(process.env))
    .option("--preview-names <names...>", "host names of its certificate", ["localhost"])
    .option(
      "--preview-certificate <folder>",
      `folder with tls.crt and tls.key (default: a certificate in the Secret ${INSPECTION_SECRET})`,
    );
}

/** The key is the operator's own, so that the digests of plans are the same. */
interface Collaborators
  extends Pick<
    InspectionServerOptions,
    "kinds" | "client" | "planKey" | "plugins" | "isBusy" | "configuredMode" | "logger" | "graceMs"
  > {
  engine: string;
  state: StateConfig;
  /** Nothing is told of the stacks of another's backend. */
  backend: Pick<BackendOwnership, "examine" | "id">;
  /** Once it is aborted, requests may continue for `graceMs`; no others are taken. */
  signal: AbortSignal;
}

const TIMEOUT_MS = 5 * 60_000;

/** Serves inspections beside an operator, with a work directory and providers of their own; nothing without a port. */
export async function serveInspection(
  options: PreviewServerOptions,
  { engine: file, state, backend, logger: parent, signal, ...collaborators }: Collaborators,
): Promise<Listener | undefined> {
  const { previewPort: port, previewHost: host, previewNames: names, previewCertificate: folder } = options;
  if (port === undefined) return undefined;
  // Loaded here: TLS and tokens take memory, and only this needs it.
  const [{ startInspectionServer }, certificates, serving] = await Promise.all([
    import("../preview/server.js"),
    import("../tls/served-certificate.js"),
    import("../tls/serving-certificate.js"),
  ]);
  const logger = parent.child({ component: "inspection" });
  const tls =
    folder !== undefined
      ? await certificates.certificateFiles("--preview-certificate", folder, logger)
      : await serving.openServingCertificate({
          client: collaborators.client,
          namespace: operatorNamespace(process.env),
          name: INSPECTION_SECRET,
          dnsNames: names,
          logger,
        });
  let stacks: Promise<OpenStacks> | undefined;
  const open = () => {
    const workDirectory = join(state.workDirectory, "inspection");
    const settings = { ...state, workDirectory, file, log: logger, timeoutMs: TIMEOUT_MS };
    stacks ??= openStacks(collaborators.kinds, settings).catch((error: unknown) => {
      stacks = undefined; // the next request tries again
      throw error;
    });
    return stacks;
  };
  const server = await startInspectionServer({
    ...collaborators,
    port,
    host,
    tls,
    logger,
    // It previews one object at a time: updates have priority.
    engine: async () => {
      await backend.examine();
      await backend.id();
      return (await open()).engine;
    },
  });
  logger.info({ previews: `${host}:${server.port}` }, "previews are served");
  let closed: Promise<void> | undefined;
  const close = async () => {
    tls.close();
    await server.close();
    await (await stacks?.catch(() => undefined))?.engine.close();
  };
  const listener = { port: server.port, close: () => (closed ??= close()) };
  // Beside the updates' own grace period, not after it.
  if (signal.aborted) void listener.close();
  signal.addEventListener("abort", () => void listener.close(), { once: true });
  return listener;
}
