import { readFile } from "node:fs/promises";
import { Agent, request } from "undici";
import { errorMessageOf, RetryableError } from "../../providers/errors";
import { parseExposition, quantileOf, type Sample } from "../telemetry/exposition";

export interface MetricsLocation {
  url: string;
  /** Holds the token of an account that may `get` `/metrics`. */
  tokenFile?: string | undefined;
  /** Whether the certificate is accepted without verification: the operator creates its own at each start. */
  insecure: boolean;
}

const TIMEOUT_MS = 5_000;

export async function readOperatorStatus({ url, tokenFile, insecure }: MetricsLocation): Promise<OperatorStatus> {
  const dispatcher = new Agent({ connect: { rejectUnauthorized: !insecure }, headersTimeout: TIMEOUT_MS });
  try {
    const token = tokenFile && (await readFile(tokenFile, "utf8")).trim();
    const { statusCode, body } = await request(url, {
      dispatcher,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(token && { headers: { authorization: `Bearer ${token}` } }),
    });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`it answered ${statusCode}`);
    return operatorStatus(parseExposition(text));
  } catch (error) {
    throw new RetryableError("Unreachable", `${url}: ${errorMessageOf(error)}`, { cause: error });
  } finally {
    await dispatcher.close();
  }
}

/** A summary of one operator's metrics since its start. Durations are in seconds. */
export type OperatorStatus = ReturnType<typeof operatorStatus>;

function operatorStatus(samples: readonly Sample[]) {
  const values = (name: string, labels: Record<string, string> = {}) =>
    samples
      .filter((sample) => sample.name === name)
      .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
      .map(({ value }) => value);
  const sum = (...of: Parameters<typeof values>) => values(...of).reduce((total, value) => total + value, 0);
  const highest = (name: string) => Math.max(0, ...values(name));
  const quantile = (q: number, histogram: string) => quantileOf(q, samples, histogram) ?? null;
  const updates = (result: string) => sum("kindstack_updates_total", { result });
  const rollouts = (state: string) => sum("kindstack_rollout_objects", { state });
  return {
    startedAt: new Date(sum("process_start_time_seconds") * 1000).toISOString(),
    memoryBytes: sum("process_resident_memory_bytes"),
    queue: {
      waiting: sum("workqueue_depth"),
      running: sum("controller_runtime_active_workers"),
      workers: highest("controller_runtime_max_concurrent_reconciles"),
      waitP90: quantile(0.9, "workqueue_queue_duration_seconds"),
    },
    updates: {
      succeeded: updates("succeeded"),
      failed: updates("failed"),
      interrupted: updates("interrupted"),
      durationP50: quantile(0.5, "kindstack_update_duration_seconds"),
      durationP90: quantile(0.9, "kindstack_update_duration_seconds"),
    },
    /** Rollouts of new versions of programs. */
    rollout: {
      waiting: rollouts("waiting"),
      updating: rollouts("updating"),
      failed: rollouts("failed"),
      stopped: sum("kindstack_rollout_stopped"),
    },
    driftRepairs: sum("kindstack_drift_repairs_total"),
    shardsHeld: sum("kindstack_shards_held"),
    /** The longest time since the API server was heard of in a watch. */
    lastContact: highest("kindstack_informer_last_contact_seconds"),
  };
}
