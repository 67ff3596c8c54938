import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** Creates metrics of a process, in a registry of their own, together with those of Node.js. */
export function createInstruments() {
  const registry = new Registry();
  const registers = [registry];
  // The default precision, 10 ms, wakes the process a hundred times a second. Ten times were still half of its time at rest.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 500 });

  const counter = <Label extends string>(name: string, labelNames: Label[], help: string) =>
    new Counter({ name, labelNames, help, registers });
  const gauge = <Label extends string>(name: string, labelNames: Label[], help: string) =>
    new Gauge({ name, labelNames, help, registers });
  /** @param buckets their upper bounds, in seconds */
  const histogram = <Label extends string>(name: string, labelNames: Label[], help: string, buckets: number[]) =>
    new Histogram({ name, labelNames, help, buckets, registers });
  const observed = <Label extends string>(
    name: string,
    labelNames: Label[],
    help: string,
    set: (gauge: Gauge<Label>) => void | Promise<void>,
  ): void => {
    new Gauge<Label>({
      name,
      labelNames,
      help,
      registers,
      collect() {
        return set(this);
      },
    });
  };

  const lastContacts = new Map<string, () => number>();
  observed(
    "kindstack_informer_last_contact_seconds",
    ["resource"],
    "Time since the last contact with the API server in the list or watch of a resource.",
    (gauge) => {
      const now = performance.now();
      for (const [resource, lastContact] of lastContacts) gauge.set({ resource }, (now - lastContact()) / 1000);
    },
  );
  /** Shows the age of an informer's last contact, which is asked at every scrape: when it was, by `performance.now()`. */
  const informer = (resource: string, lastContact: () => number): void => void lastContacts.set(resource, lastContact);

  return { registry, counter, gauge, histogram, observed, informer };
}
