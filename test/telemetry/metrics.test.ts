import { describe, expect, it } from "vitest";
import { countRuns } from "../../src/controller/run-metrics";
import { createMetrics } from "../../src/telemetry/metrics";
import type { Plan } from "../../stacks/contract/plan";
import { postgresWriter } from "../../stacks/kinds/postgres-writer/kind";
import { alertingRules } from "../../stacks/platform/alerts";
import { tenantObject, withConditions } from "../objects";
import { workQueueOf } from "../queue/queues";

describe("createMetrics", () => {
  it("writes Prometheus' text with labels", async () => {
    const metrics = createMetrics();
    metrics.reconcileTotal.inc({ controller: "tenant", result: "success" });
    metrics.updateDuration.observe({ kind: "Tenant", operation: "up", result: "succeeded" }, 0.7);
    const text = await metrics.registry.metrics();
    expect(text).toContain('controller_runtime_reconcile_total{controller="tenant",result="success"} 1');
    expect(text).toMatch(/kindstack_update_duration_seconds_bucket\{le="0.75",.*operation="up".*\} 1/);
    expect(text).toMatch(/kindstack_update_duration_seconds_bucket\{le="0.5",.*operation="up".*\} 0/);
  });

  it("has a zero of each series that a rule reads by its rise, before anything is counted", async () => {
    const metrics = createMetrics();
    countRuns(postgresWriter, metrics);
    metrics.workQueue();
    const { rules = [] } = alertingRules().groups[0] ?? {};
    const read = rules.flatMap(({ expr }) => [...expr.matchAll(/\b(?:rate|increase)\((\w+)(?:\{(.*?)\})?\[/g)]);
    expect(read.length).toBeGreaterThan(3);
    const text = await metrics.registry.metrics();
    for (const [, name = "", labels = ""] of read) {
      const samples = text.split("\n").filter((line) => line.startsWith(name) && line.includes(labels));
      expect.soft(samples, `${name}{${labels}}`).not.toEqual([]);
      for (const sample of samples) expect.soft(sample).toMatch(/ 0$/);
    }
  });

  it("counts plans, and tells how long the oldest has waited", async () => {
    const metrics = createMetrics();
    expect(await metrics.registry.metrics()).toContain('kindstack_plan_age_seconds{state="Pending"} 0\n');
    const since = (seconds: number) => ({ at: new Date(Date.now() - seconds * 1000).toISOString(), reason: "Drifted" });
    const plan = (seconds: number, state: string) => ({ spec: { cause: since(seconds) }, status: { state } }) as Plan;
    metrics.plans(() => [plan(10, "Pending"), plan(100, "Pending"), plan(1000, "Rejected")]);
    const text = await metrics.registry.metrics();
    expect(text).toContain('kindstack_plans{state="Pending"} 2\n');
    expect(text).toContain('kindstack_plans{state="Applying"} 0\n');
    expect(text).toMatch(/kindstack_plan_age_seconds\{state="Pending"\} 10\d/);
  });

  it("counts what a work queue does", async () => {
    const metrics = createMetrics();
    const queue = workQueueOf({ observer: metrics.workQueue() });
    queue.add({ id: "a" });
    queue.add({ id: "b" });
    expect(await metrics.registry.metrics()).toContain('workqueue_depth{name="kindstack"} 2');

    queue.addRateLimited({ id: "a" });
    const worked: string[] = [];
    const stop = new AbortController();
    const ended = queue.run(
      1,
      async ({ id }) => {
        if (worked.push(id) === 2) stop.abort();
      },
      stop.signal,
    );
    await ended;
    const text = await metrics.registry.metrics();
    expect(worked).toEqual(["a", "b"]);
    expect(text).toContain('workqueue_depth{name="kindstack"} 0');
    expect(text).toContain('workqueue_adds_total{name="kindstack"} 2');
    expect(text).toContain('workqueue_retries_total{name="kindstack"} 1');
    expect(text).toContain('workqueue_queue_duration_seconds_count{name="kindstack"} 2');
    expect(text).toContain('workqueue_work_duration_seconds_count{name="kindstack"} 2');
  });

  it("computes the age of an informer's last contact at the scrape and counts relists", async () => {
    const metrics = createMetrics();
    let lastContact = performance.now() - 90_000;
    const observer = metrics.informer("tenants", () => lastContact);
    observer.relisted();
    const age = async () => {
      const text = await metrics.registry.getSingleMetricAsString("kindstack_informer_last_contact_seconds");
      return Number(/\{resource="tenants"\} (\S+)/.exec(text)?.[1]);
    };
    expect(await age()).toBeCloseTo(90, 0);
    lastContact = performance.now();
    expect(await age()).toBeCloseTo(0, 0);
    expect(await metrics.registry.metrics()).toContain('kindstack_informer_relists_total{resource="tenants"} 1');
  });

  it("counts objects by what their conditions say, each where its last change put it", async () => {
    const metrics = createMetrics();
    const fresh = tenantObject();
    const failed = withConditions(fresh, "Synced=False Conflict", "Ready=False Conflict", "Stalled=True Conflict");
    const ready = withConditions(fresh, "Synced=True Succeeded", "Ready=True Succeeded");
    const paused = { ...ready, metadata: { ...ready.metadata, annotations: { "kindstack.dev/paused": "true" } } };
    const counted = async () =>
      (await metrics.registry.metrics())
        .split("\n")
        .filter((line) => /^kindstack_object(s|_states)\{/.test(line) && !line.endsWith(" 0"))
        .map((line) => line.replace('kind="tenants",', ""));

    metrics.objectChanged("tenants", { type: "added", object: fresh });
    expect(await counted()).toEqual(['kindstack_objects{synced="Unknown",ready="Unknown",reason="Pending"} 1']);

    metrics.objectChanged("tenants", { type: "modified", object: failed, previous: fresh });
    metrics.objectChanged("tenants", { type: "added", object: ready });
    expect(await counted()).toEqual([
      'kindstack_objects{synced="False",ready="False",reason="Conflict"} 1',
      'kindstack_objects{synced="True",ready="True",reason="Succeeded"} 1',
      'kindstack_object_states{state="Stalled"} 1',
    ]);

    metrics.objectChanged("tenants", { type: "modified", object: paused, previous: failed });
    expect(await counted()).toEqual([
      'kindstack_objects{synced="True",ready="True",reason="Succeeded"} 2',
      'kindstack_object_states{state="Paused"} 1',
    ]);

    metrics.objectChanged("tenants", { type: "deleted", object: paused, previous: paused });
    expect(await counted()).toEqual(['kindstack_objects{synced="True",ready="True",reason="Succeeded"} 1']);
  });
});
