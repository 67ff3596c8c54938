import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import pg from "pg";
import type { KubernetesClient, Manifest } from "../providers/kubernetes/client";
import { disconnectKubernetes } from "../providers/kubernetes/connection";
import { closePool } from "../providers/postgres/pool";
import { type DevCluster, removeDevCluster, startDevCluster } from "../src/dev/cluster";
import { adminClient } from "../src/dev/control-plane";
import { layoutOf, logFileOf } from "../src/dev/layout";
import { lastLines } from "../src/dev/process";
import { type GoOperatorOptions, startGoOperator } from "./go-operator";
import { type OperatorProcess, startOperator, sumOfMetric } from "./operator-process";
import { userConfig } from "./users";

/** What every bench gets. */
export interface BenchContext {
  /** The Pulumi CLI. */
  pulumi: string;
  /** The server that runs its commands for the operator. */
  engine: string;
  /** What the CLI runs programs with that are not in the process that started it. */
  languageHost: string;
  /** The program of the operator in Go. */
  goOperator: string;
  /** Small sizes, to see that all of it works. */
  quick: boolean;
  /** Says what it is at. */
  detail(text: string): void;
  /** Ends it. */
  signal: AbortSignal;
}

/** A control plane and a database of a bench's own. */
export interface BenchCluster {
  dev: DevCluster;
  /** With the rights of an administrator. */
  client: KubernetesClient;
  /** A folder for what is made beside the operator. */
  scratch: string;
  stateDirectory: string;
  /**
   * Starts an operator; the next one may be started when it was stopped.
   *
   * @param environment what differs from that of an operator in development
   * @param args more words for `run`
   */
  startOperator(environment?: Record<string, string>, args?: readonly string[]): Promise<OperatorProcess>;
  /** Starts the operator in Go in its place, with the same rights; an operator must have installed the CRDs before. */
  startGoOperator(options: GoOperatorOptions): Promise<OperatorProcess>;
  /** Requests of operators that the API server has begun to work on, by its own count; a watch is one. */
  operatorRequests(): Promise<number>;
  /** The one number that a query of the database gives. */
  queryNumber(query: string, values?: unknown[]): Promise<number>;
}

const OPERATOR = "kindstack-operator";
const LOG_LINES = 20;

/**
 * Runs a bench on a control plane and a database that are started for it, with its environment as this process's, and
 * removes them.
 */
export async function withBenchCluster<T>(
  context: BenchContext,
  work: (cluster: BenchCluster) => Promise<T>,
): Promise<T> {
  const { detail, signal } = context;
  const directory = await fs.mkdtemp(path.join(os.tmpdir(), "kindstack-bench-"));
  const dir = path.join(directory, "cluster");
  const scratch = path.join(directory, "scratch");
  let cluster: DevCluster | undefined;
  let closeClients = async () => {};
  try {
    await fs.chmod(directory, 0o711); // PostgreSQL may run as another user
    await fs.mkdir(scratch);
    cluster = await startDevCluster({ dir, log: detail, signal });
    const dev = cluster;
    Object.assign(process.env, dev.env); // providers take their connections from the environment
    const client = adminClient(dev.kubeconfig);
    const pool = new pg.Pool({ ...dev.postgres, max: 1 });
    closeClients = async () => {
      await pool.end();
      await client.close();
    };
    const kubeconfig = await addOperatorUser(dev, client, scratch);
    return await work({
      dev,
      client,
      scratch,
      stateDirectory: layoutOf(dir).state,
      startOperator: (environment = {}, args = []) =>
        startOperator(dev, { KUBECONFIG: kubeconfig, ...environment }, context.engine, args),
      startGoOperator: (options) => startGoOperator(dev, context.goOperator, { KUBECONFIG: kubeconfig }, options),
      async operatorRequests() {
        const text = await client.json<string>("GET", "/metrics");
        return sumOfMetric(text, "apiserver_flowcontrol_dispatched_requests_total", { flow_schema: OPERATOR });
      },
      async queryNumber(query, values = []) {
        const { rows } = await pool.query<{ number: string }>(query, values);
        return Number(rows[0]?.number);
      },
    });
  } catch (error) {
    const log = lastLines(logFileOf(layoutOf(dir), "operator"), LOG_LINES);
    if (!signal.aborted && log !== "") console.error(`\nThe end of the operator's log:\n${log}`);
    throw error;
  } finally {
    await closePool();
    await disconnectKubernetes();
    await closeClients();
    await cluster?.stop();
    await removeDevCluster(dir);
    await fs.rm(directory, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** A user of the operator's own, so that the API server counts its requests apart from those of everybody else. */
async function addOperatorUser(dev: DevCluster, client: KubernetesClient, folder: string): Promise<string> {
  const subject = { kind: "User", name: OPERATOR };
  const any = ["*"];
  const manifests: Manifest[] = [
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: OPERATOR },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
      subjects: [{ ...subject, apiGroup: "rbac.authorization.k8s.io" }],
    },
    {
      apiVersion: "flowcontrol.apiserver.k8s.io/v1",
      kind: "FlowSchema",
      metadata: { name: OPERATOR },
      spec: {
        priorityLevelConfiguration: { name: "exempt" }, // as the administrator that it is in development
        matchingPrecedence: 100,
        rules: [
          {
            subjects: [{ kind: "User", user: { name: OPERATOR } }],
            resourceRules: [{ verbs: any, apiGroups: any, resources: any, clusterScope: true, namespaces: any }],
            nonResourceRules: [{ verbs: any, nonResourceURLs: any }],
          },
        ],
      },
    },
  ];
  for (const manifest of manifests) {
    await client.create(manifest);
  }
  const file = path.join(folder, "operator.kubeconfig");
  const config = await userConfig(dev.dir, OPERATOR);
  await fs.writeFile(file, config.exportConfig(), { mode: 0o600 });
  return file;
}
