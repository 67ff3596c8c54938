import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { alertingRules } from "../../../stacks/platform/alerts";
import { Promtool, type Series } from "./promtool";

let promtool: Promtool;
beforeAll(async () => {
  promtool = await Promtool.open();
});
afterAll(() => promtool.close());

/** An operator that has nothing to be alerted of. */
const WELL: Series = {
  kindstack_shards_held: "1x120",
  'kindstack_informer_last_contact_seconds{resource="tenants"}': "10x120",
  'kindstack_objects{kind="tenants",synced="True",ready="True",reason="Succeeded"}': "7x120",
  'kindstack_object_states{kind="tenants",state="Stalled"}': "0x120",
  'kindstack_plan_age_seconds{state="Pending"}': "0+60x120",
  'kindstack_updates_total{kind="tenants",result="succeeded"}': "0+1x120",
};

/** What is added to that, and the alert that comes of it. */
const CASES: [alert: string, series: Series][] = [
  ["KindstackDown", { kindstack_shards_held: "_x120" }],
  ["KindstackShardsNotHeld", { kindstack_shards_held: "0x120" }],
  [
    'KindstackInformerSilent{resource="tenants"}',
    { 'kindstack_informer_last_contact_seconds{resource="tenants"}': "0+60x120" },
  ],
  ['KindstackObjectsStalled{kind="tenants"}', { 'kindstack_object_states{kind="tenants",state="Stalled"}': "2x120" }],
  [
    'KindstackObjectsNotSynced{kind="tenants",reason="Conflict"}',
    { 'kindstack_objects{kind="tenants",synced="False",ready="False",reason="Conflict"}': "1x120" },
  ],
  [
    'KindstackObjectsNotReady{kind="tenants",reason="Progressing"}',
    { 'kindstack_objects{kind="tenants",synced="True",ready="False",reason="Progressing"}': "1x120" },
  ],
  [
    'KindstackDriftUnknown{kind="tenants"}',
    { 'kindstack_object_states{kind="tenants",state="DriftUnknown"}': "2x120" },
  ],
  ['KindstackModeLoosened{kind="tenants"}', { 'kindstack_modes_loosened_total{kind="tenants"}': "0x100 1x20" }],
  ["KindstackPlansWait", { 'kindstack_plan_age_seconds{state="Pending"}': "86000+60x120" }],
  ['KindstackUpdatesFailing{kind="tenants"}', { 'kindstack_updates_total{kind="tenants",result="failed"}': "0+2x120" }],
  ['KindstackRolloutStopped{kind="tenants"}', { 'kindstack_rollout_stopped{kind="tenants"}': "1x120" }],
  [
    'KindstackUpdatesSlow{kind="tenants"}',
    {
      'kindstack_update_duration_seconds_bucket{kind="tenants",le="300"}': "0+1x120",
      'kindstack_update_duration_seconds_bucket{kind="tenants",le="600"}': "0+9x120",
      'kindstack_update_duration_seconds_bucket{kind="tenants",le="+Inf"}': "0+9x120",
    },
  ],
  [
    "KindstackQueueDelayed",
    {
      'workqueue_queue_duration_seconds_bucket{name="kindstack",le="60"}': "0+1x120",
      'workqueue_queue_duration_seconds_bucket{name="kindstack",le="120"}': "0+9x120",
      'workqueue_queue_duration_seconds_bucket{name="kindstack",le="+Inf"}': "0+9x120",
    },
  ],
  ['KindstackDriftReturns{kind="tenants"}', { 'kindstack_drift_repairs_total{kind="tenants"}': "0+1x120" }],
];

describe("the alerts, as Prometheus evaluates them", () => {
  it("are rules without a fault", () => {
    expect(promtool.check()).toMatch(/SUCCESS: \d+ rules found/);
  });

  it("are silent while all is well", () => promtool.expectFiring(WELL, 110, []));

  it.each(CASES)("%s fires when it should, and alone", (alert, series) => {
    promtool.expectFiring({ ...WELL, ...series }, 110, [alert]);
    expect(() => promtool.expectFiring({ ...WELL, ...series }, 3, [alert])).toThrow(); // not at once
  });

  it("are all among these", () => {
    const names = alertingRules({ shards: 1 }).groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
    expect(CASES.map(([alert]) => alert.replace(/\{.*/, ""))).toEqual(names);
  });
});
