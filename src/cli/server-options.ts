import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { errorMessageOf, TerminalError } from "../../providers/errors";
import { loadKubeconfig } from "../../providers/kubernetes/kubeconfig";
import type { OperatorOptions } from "./ask-operator";
import { httpsUrl } from "./parse-options";

/** Which operator a command asks; without `server`, it reads the state, the cluster and the database itself. */
export interface ServerOptions {
  server?: string;
  serverCa?: string;
  tokenFile?: string;
}

export function withServerOptions(command: Command): Command {
  return command
    .option("--server <url>", "ask the operator at this address; needs only a token", httpsUrl)
    .option("--server-ca <file>", "CA certificates of the server (default: those of Node.js)")
    .option("--token-file <file>", "bearer token for the server (default: KINDSTACK_TOKEN, or the kubeconfig's)");
}

/** How to ask the operator at `server`. @throws TerminalError `Misconfigured` for an unreadable file, or no token */
export async function operatorAt(
  { server = "", serverCa, tokenFile }: ServerOptions,
  signal: AbortSignal,
): Promise<OperatorOptions> {
  const token = await readToken(tokenFile);
  const ca = serverCa === undefined ? undefined : readOptionFile("--server-ca", serverCa);
  return { url: server, token, ca, signal };
}

async function readToken(file: string | undefined): Promise<string> {
  if (file !== undefined) return readOptionFile("--token-file", file).trim();
  if (process.env.KINDSTACK_TOKEN) return process.env.KINDSTACK_TOKEN;
  let missing = "has none";
  try {
    const token = await kubeconfigToken();
    if (token !== undefined) return token;
  } catch (error) {
    if (error instanceof TerminalError) throw error;
    missing = `gives none: ${errorMessageOf(error)}`;
  }
  throw new TerminalError(
    "Misconfigured",
    "no token for --server: set KINDSTACK_TOKEN or --token-file, for example to what " +
      `\`kubectl create token kindstack-preview\` prints; the current kubeconfig ${missing}`,
  );
}

function readOptionFile(option: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new TerminalError("Misconfigured", `${option}: ${errorMessageOf(error)}`);
  }
}

/** The token of the kubeconfig's user; a plugin may fetch it. */
async function kubeconfigToken(): Promise<string | undefined> {
  const config = loadKubeconfig();
  const options: { headers?: Record<string, unknown> } = {};
  await config.applyToHTTPSOptions(options as never);
  if (config.getCurrentUser()?.impersonateUser) {
    throw new TerminalError(
      "Misconfigured",
      "the kubeconfig acts as another user, which --server would not know: name a token of that user with --token-file",
    );
  }
  return /^Bearer (\S+)$/.exec(String(options.headers?.Authorization ?? ""))?.[1];
}
