import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { TerminalError } from "../providers/errors";
import { podNamespace } from "../providers/kubernetes/pod-namespace";

/** Where the operator keeps its files, its state and the key to it. */
export interface StateConfig {
  /** Scratch files of the CLI; may be lost between runs. */
  workDirectory: string;
  backendUrl: string;
  protection: StateProtection;
}

/** What protects the secrets of states: a passphrase, a key service, or both while stacks go from one to the other. */
export interface StateProtection {
  passphrase: { value: string } | { file: string } | undefined;
  /** The URL of the engine's secrets provider; without one, the passphrase protects what is written. */
  keyService: string | undefined;
}

const BACKENDS = ["file://", "postgres://", "s3://", "gs://", "azblob://"];
const KEY_SERVICES = ["awskms://", "azurekeyvault://", "gcpkms://", "hashivault://"];

/**
 * Reads the state's configuration from Pulumi's own variables and `KINDSTACK_WORK_DIR`.
 *
 * @throws TerminalError naming the variable, its value and what is allowed
 */
export function readStateConfig(environment: NodeJS.ProcessEnv): StateConfig {
  const workDirectory = resolve(environment.KINDSTACK_WORK_DIR || ".kindstack/work");
  const backendUrl = environment.PULUMI_BACKEND_URL || `file://${join(workDirectory, "state")}`;
  checkScheme("PULUMI_BACKEND_URL", backendUrl, BACKENDS);
  return { workDirectory, backendUrl, protection: readProtection(environment, workDirectory) };
}

/** The message shows nothing of a URL but its scheme: the rest of it may hold a password. */
function checkScheme(variable: string, url: string, schemes: readonly string[], otherwise = ""): void {
  if (schemes.some((scheme) => url.startsWith(scheme))) return;
  const found = /^[a-z][a-z0-9+.-]*:\/\//i.exec(url)?.[0] ?? "its value";
  throw new TerminalError("Misconfigured", `${variable}: ${found} is not one of ${schemes.join(", ")}${otherwise}`);
}

/** Whether this process runs in a Pod. */
export function inCluster(environment: NodeJS.ProcessEnv): boolean {
  return environment.KUBERNETES_SERVICE_HOST !== undefined;
}

/** Where servers listen by default: in a Pod on all addresses of both families, elsewhere for this machine alone. */
export function listenAddress(environment: NodeJS.ProcessEnv): string {
  return inCluster(environment) ? "::" : "127.0.0.1";
}

/** The operator's own namespace, where its Secrets are: `KINDSTACK_NAMESPACE`, in a Pod the Pod's, else `default`. */
export function operatorNamespace(environment: NodeJS.ProcessEnv): string {
  return environment.KINDSTACK_NAMESPACE || (podNamespace() ?? "default");
}

function readProtection(environment: NodeJS.ProcessEnv, workDirectory: string): StateProtection {
  const keyService = environment.KINDSTACK_SECRETS_PROVIDER || undefined;
  if (keyService !== undefined) {
    checkScheme("KINDSTACK_SECRETS_PROVIDER", keyService, KEY_SERVICES, ", or nothing for a passphrase");
  }
  const { PULUMI_CONFIG_PASSPHRASE: value, PULUMI_CONFIG_PASSPHRASE_FILE: file } = environment;
  const isNeeded = keyService === undefined || value !== undefined || existsSync(file ?? "");
  return { passphrase: isNeeded ? readPassphrase(environment, workDirectory) : undefined, keyService };
}

/** The passphrase itself; `undefined` where a key service alone protects states. */
export async function passphraseOf({ passphrase }: StateProtection): Promise<string | undefined> {
  if (passphrase === undefined || "value" in passphrase) return passphrase?.value;
  return (await readFile(passphrase.file, "utf8")).trim();
}

/** As Pulumi reads it: the variable counts before the file, also if it is empty. */
function readPassphrase(environment: NodeJS.ProcessEnv, workDirectory: string): StateProtection["passphrase"] {
  const { PULUMI_CONFIG_PASSPHRASE: value, PULUMI_CONFIG_PASSPHRASE_FILE: file } = environment;
  if (value !== undefined) return { value };
  if (file) {
    if (!existsSync(file))
      throw new TerminalError("Misconfigured", `PULUMI_CONFIG_PASSPHRASE_FILE: there is no file ${file}`);
    return { file: resolve(file) };
  }
  if (inCluster(environment)) {
    throw new TerminalError(
      "Misconfigured",
      "no passphrase for the state: mount a Secret and name it in PULUMI_CONFIG_PASSPHRASE_FILE, " +
        "or set PULUMI_CONFIG_PASSPHRASE; in a cluster none is generated, because it would be lost with the Pod",
    );
  }
  return { file: generatedPassphrase(workDirectory) };
}

/** In development a passphrase is made once and kept, readable by its owner alone. */
function generatedPassphrase(workDirectory: string): string {
  const file = join(workDirectory, "passphrase");
  if (!existsSync(file)) {
    mkdirSync(workDirectory, { recursive: true });
    writeFileSync(file, `${randomBytes(24).toString("base64url")}\n`, { mode: 0o600, flag: "wx" });
  }
  return file;
}
