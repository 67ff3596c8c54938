import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** What makes the metrics of a process, in a registry of their own, together with those of Node.js. */
export interface Instruments {
  registry: Registry;
  counter<Label extends string>(name: string, help: string, ...labels: Label[]): Counter<Label>;
  gauge<Label extends string>(name: string, help: string, ...labels: Label[]): Gauge<Label>;
  /** A gauge that is set at every scrape. */
  observed<Label extends string>(name: string, help: string, labels: Label[], set: (gauge: Gauge<Label>) => void): void;
  /** @param buckets their upper bounds, in seconds */
  histogram<Label extends string>(name: string, help: string, buckets: number[], ...labels: Label[]): Histogram<Label>;
}

export function createInstruments(): Instruments {
  const registry = new Registry();
  const registers = [registry];
  // Its own precision, 10 ms, wakes the process a hundred times a second: more than all else that it does at rest.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
  return {
    registry,
    counter: (name, help, ...labelNames) => new Counter({ name, help, labelNames, registers }),
    gauge: (name, help, ...labelNames) => new Gauge({ name, help, labelNames, registers }),
    observed(name, help, labelNames, set) {
      const collect = (): void => set(gauge);
      const gauge: Parameters<typeof set>[0] = new Gauge({ name, help, labelNames, registers, collect });
    },
    histogram: (name, help, buckets, ...labelNames) => new Histogram({ name, help, labelNames, buckets, registers }),
  };
}

/** Makes the gauge of informers' contacts. @param lastContacts by resource, when it was, by `performance.now()` */
export function observeLastContact(
  observed: Instruments["observed"],
  lastContacts: ReadonlyMap<string, () => number>,
): void {
  observed(
    "kindstack_informer_last_contact_seconds",
    "Time since the last contact with the API server in the list or watch of a resource.",
    ["resource"],
    (gauge) => {
      const now = performance.now();
      for (const [resource, lastContact] of lastContacts) gauge.set({ resource }, (now - lastContact()) / 1000);
    },
  );
}
