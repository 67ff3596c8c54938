import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { createMetrics } from "../../../src/telemetry/metrics";
import { alertingRules } from "../../../stacks/platform/alerts";
import { dashboard } from "../../../stacks/platform/dashboard";
import { monitoring, prometheusRule } from "../../../stacks/platform/monitoring";
import { parseConfiguration } from "../../../stacks/platform/parse-configuration";

const ROOT = path.resolve(__dirname, "../../..");
const rules = alertingRules().groups.flatMap((group) => group.rules);
const { panels } = dashboard();
interface Placed {
  title: string;
  gridPos: Record<"x" | "y" | "w" | "h", number>;
}

/** What follows a metric's name in what a histogram's samples are called. */
const PARTS = /_(bucket|sum|count)$/;
function metricsIn(expr: string): string[] {
  return [...expr.matchAll(/\b(?:kindstack|workqueue|controller_runtime|process)_[a-z_]+/g)].map(([name]) => name);
}

describe("what is queried of the operator", () => {
  const exported = new Set(
    createMetrics()
      .registry.getMetricsAsArray()
      .map(({ name }) => name),
  );
  const queries = [
    ...rules.map(({ alert, expr }) => [alert, expr] as const),
    ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [`${title}: ${expr}`, expr] as const)),
  ];

  it.each(queries)("is there: %s", (_name, expr) => {
    const names = metricsIn(expr);
    expect(names).not.toEqual([]);
    expect(names.filter((name) => !exported.has(name) && !exported.has(name.replace(PARTS, "")))).toEqual([]);
  });
});

describe("the alerts", () => {
  it("are in deploy/prometheus-rule.yaml", async () => {
    const manifest = stringify(prometheusRule(parseConfiguration({}, "1.2.3")), { lineWidth: 0 });
    // When this fails: npx vitest run -u test/stacks/platform/monitoring.test.ts
    await expect(manifest).toMatchFileSnapshot(path.join(ROOT, "deploy/prometheus-rule.yaml"));
  });

  it.each(rules.map((rule) => [rule.alert, rule] as const))("%s leads to a heading of a page", (alert, rule) => {
    const [page = "", anchor] = rule.annotations.runbook.split("#");
    const headings = [...fs.readFileSync(path.join(ROOT, page), "utf8").matchAll(/^## (.*)$/gm)].map(
      ([, text]) => text,
    );
    expect(anchor).toBe(alert.toLowerCase());
    expect(headings).toContain(alert);
  });

  it("have one heading each, and no heading is left over", () => {
    const page = fs.readFileSync(path.join(ROOT, "docs/alerts.md"), "utf8");
    const headings = [...page.matchAll(/^## (Kindstack\w+)$/gm)].map(([, text]) => text);
    expect(headings).toEqual(rules.map(({ alert }) => alert));
  });
});

describe("the dashboard", () => {
  it("is in deploy/grafana-dashboard.json", async () => {
    await expect(`${JSON.stringify(dashboard(), null, 2)}\n`).toMatchFileSnapshot(
      path.join(ROOT, "deploy/grafana-dashboard.json"),
    );
  });

  it("has panels side by side, none upon another", () => {
    const taken = new Set<string>();
    for (const { title, gridPos } of panels as Placed[]) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.has(`${x},${y}`), title).toBe(false);
          taken.add(`${x},${y}`);
        }
      }
    }
  });
});

describe("the installation", () => {
  const kindsOf = (values: Record<string, string>) =>
    monitoring(parseConfiguration(values, "1")).map(({ kind }) => kind);

  it("has alerts and dashboard when it is asked for them", () => {
    expect(kindsOf({})).toEqual([]);
    expect(kindsOf({ prometheusRule: "true" })).toEqual(["PrometheusRule"]);
    expect(kindsOf({ grafanaDashboard: "true" })).toEqual(["ConfigMap"]);
  });
});
