import fs from "node:fs";
import path from "node:path";
import { execa } from "execa";
import { inject } from "vitest";
import { parse, stringify } from "yaml";
import { eventually } from "../../src/testing/eventually";
import { blocksOf } from "./pages";

export const NAMESPACE = "kindstack-system";
export const OPERATOR = "app.kubernetes.io/component=operator";
/** What is deleted before the operator is; kubectl takes the resources' names. */
export const KINDS = ["tenants.multitenancy", "tenants.capsule", "postgreswriters", "podsets", "memcacheds"];
/** Of the state in the cluster's database, which has one passphrase. */
export const PASSPHRASE = "correct horse battery staple";
/** What only something that hangs takes, also on a slow machine. */
const TIMEOUT = "--timeout=180s";

export const node = inject("node");
const env = { KUBECONFIG: node.kubeconfig };

/** @throws with what it printed */
export async function kubectl(args: string | string[], stdin?: string): Promise<string> {
  const words = typeof args === "string" ? args.split(" ") : args;
  const { stdout } = await execa("kubectl", words, { env, ...(stdin !== undefined && { input: stdin }) });
  return stdout;
}

export async function get<T>(args: string): Promise<T> {
  return JSON.parse(await kubectl(`get ${args} -o json`)) as T;
}

/** The command line that was built with the image, as an administrator runs it. */
export async function kindstack(args: string[], stdin?: string): Promise<string> {
  const { stdout } = await execa(process.execPath, [node.cli, ...args], {
    env,
    ...(stdin !== undefined && { input: stdin }),
  });
  return stdout;
}

/** The namespace, the Secrets and the values of docs/install.md. @returns the file of the values */
export async function prepareInstallation(values: object = {}): Promise<string> {
  await kubectl(`create namespace ${NAMESPACE}`);
  await kubectl([
    "create",
    "secret",
    "generic",
    "kindstack-state",
    "-n",
    NAMESPACE,
    `--from-literal=passphrase=${PASSPHRASE}`,
    `--from-literal=backendUrl=${node.databaseUrl}`,
  ]);
  const { username, password, pathname } = new URL(node.databaseUrl);
  await kubectl([
    "create",
    "secret",
    "generic",
    "kindstack-postgres",
    "-n",
    NAMESPACE,
    `--from-literal=PSQL_HOST=${node.databaseHost}`,
    `--from-literal=PSQL_DBNAME=${pathname.slice(1)}`,
    `--from-literal=PSQL_USER=${username}`,
    `--from-literal=PSQL_PASSWORD=${decodeURIComponent(password)}`,
    "--from-literal=PSQL_SSLMODE=disable",
  ]);
  const file = path.join(node.directory, "values.yaml");
  const page = parse(blocksOf("install.md", "yaml", "backendFromSecret")) as object;
  fs.writeFileSync(file, stringify({ ...page, ...values }));
  return file;
}

export async function install(values: string): Promise<void> {
  await kindstack(["install", "--check", "--values", values]);
  await kubectl("apply --server-side -f -", await kindstack(["install", "--print", "--values", values]));
}

export async function rolledOut(): Promise<void> {
  await kubectl(`rollout status deployment/kindstack -n ${NAMESPACE} ${TIMEOUT}`);
}

/** As docs/install.md says. */
export async function uninstall(values: string): Promise<void> {
  await kubectl(`delete ${KINDS.join(",")} --all -A`);
  await kubectl(`delete namespace ${NAMESPACE}`);
  await kubectl("delete --ignore-not-found -f -", await kindstack(["install", "--print", "--values", values]));
}

/** Waits until all of these objects are Ready. */
export async function areReady(resources: readonly string[]): Promise<void> {
  for (const resource of resources) {
    const [name = "", namespace] = resource.split("@");
    await kubectl(["wait", "--for=condition=Ready", name, TIMEOUT, ...(namespace ? ["-n", namespace] : [])]);
  }
}

interface Pod {
  metadata: { name: string; uid: string; creationTimestamp: string; deletionTimestamp?: string };
  spec: { nodeName: string };
  status: {
    phase: string;
    containerStatuses?: {
      restartCount: number;
      containerID: string;
      state: { running?: { startedAt: string } };
      lastState: { terminated?: { reason: string } };
    }[];
    conditions: { type: string; status: string; lastTransitionTime: string }[];
  };
}

/** The operator's Pods that are not being deleted. */
export async function pods(): Promise<Pod[]> {
  const { items } = await get<{ items: Pod[] }>(`pods -n ${NAMESPACE} -l ${OPERATOR}`);
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

export async function onlyPod(): Promise<Pod> {
  return eventually(async () => {
    const [pod, ...others] = await pods();
    if (pod === undefined || others.length > 0) throw new Error(`${others.length + 1} Pods`);
    return pod;
  });
}

/** The lines of the operator's logs; those that are no JSON are returned as texts. */
export async function logLines(args = ""): Promise<(Record<string, unknown> | string)[]> {
  const text = await kubectl(`logs -n ${NAMESPACE} -l ${OPERATOR} --tail=-1${args}`);
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => {
      try {
        return JSON.parse(line) as Record<string, unknown>;
      } catch {
        return line;
      }
    });
}

export interface Event {
  reason: string;
  message: string;
  involvedObject: { kind: string; name: string };
}

export async function events(): Promise<Event[]> {
  return (await get<{ items: Event[] }>(`events -n ${NAMESPACE}`)).items;
}
