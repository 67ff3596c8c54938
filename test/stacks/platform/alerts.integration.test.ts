import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { alertingRules } from "../../../stacks/platform/alerts";
import { Promtool, type Series } from "./promtool";

let promtool: Promtool;
beforeAll(async () => {
  promtool = await Promtool.open();
});
afterAll(() => promtool.close());

const LAST_CONTACT = 'kindstack_informer_last_contact_seconds{resource="tenants"}';
/** An operator that has nothing to be alerted of. */
const WELL: Series = {
  kindstack_shards: "1x120",
  kindstack_shards_held: "1x120",
  [LAST_CONTACT]: "10x120",
  'kindstack_objects{kind="tenants",synced="True",ready="True",reason="Succeeded"}': "7x120",
  'kindstack_object_states{kind="tenants",state="Stalled"}': "0x120",
  'kindstack_plan_age_seconds{state="Pending"}': "0+60x120",
  'kindstack_updates_total{kind="tenants",result="succeeded"}': "0+1x120",
};

const LOOSENED = 'KindstackModeLoosened{kind="tenants"}';

const objects = (synced: string, ready: string, reason: string): Series => ({
  [`kindstack_objects{kind="tenants",synced="${synced}",ready="${ready}",reason="${reason}"}`]: "1x120",
});
const objectStates = (state: string): Series => ({
  [`kindstack_object_states{kind="tenants",state="${state}"}`]: "2x120",
});
/** Of nine observations, one within the first limit, and all within the second. */
const buckets = (name: string, label: string, limits: readonly [string, string]): Series => ({
  [`${name}_bucket{${label},le="${limits[0]}"}`]: "0+1x120",
  [`${name}_bucket{${label},le="${limits[1]}"}`]: "0+9x120",
  [`${name}_bucket{${label},le="+Inf"}`]: "0+9x120",
});
const slow = buckets("kindstack_update_duration_seconds", 'kind="tenants"', ["300", "600"]);
const delayed = buckets("workqueue_queue_duration_seconds", 'name="kindstack"', ["60", "120"]);
const FOREIGN = '{reason="BackendForeign"}';
const TENANTS = '{kind="tenants"}';

/** What is added to that, and the alert that comes of it. */
const CASES: [alert: string, series: Series][] = [
  ["KindstackDown", { kindstack_shards_held: "_x120" }],
  ["KindstackShardsNotHeld", { kindstack_shards_held: "0x120" }],
  [`KindstackBackendRefused${FOREIGN}`, { [`kindstack_backend_refused${FOREIGN}`]: "0x60 1x60" }],
  ['KindstackInformerSilent{resource="tenants"}', { [LAST_CONTACT]: "0+60x120" }],
  [`KindstackStateMissing${TENANTS}`, objects("False", "False", "StateMissing")],
  [`KindstackObjectsStalled${TENANTS}`, objectStates("Stalled")],
  ['KindstackObjectsNotSynced{kind="tenants",reason="Conflict"}', objects("False", "False", "Conflict")],
  ['KindstackObjectsNotReady{kind="tenants",reason="Progressing"}', objects("True", "False", "Progressing")],
  [`KindstackDriftUnknown${TENANTS}`, objectStates("DriftUnknown")],
  [LOOSENED, { [`kindstack_mode_loosened_timestamp_seconds${TENANTS}`]: "_x105 6300x15" }],
  ["KindstackPlansWait", { 'kindstack_plan_age_seconds{state="Pending"}': "86000+60x120" }],
  [`KindstackUpdatesFailing${TENANTS}`, { 'kindstack_updates_total{kind="tenants",result="failed"}': "0+3x120" }],
  [`KindstackRolloutStopped${TENANTS}`, { [`kindstack_rollout_stopped${TENANTS}`]: "1x120" }],
  [`KindstackUpdatesSlow${TENANTS}`, slow],
  ["KindstackQueueDelayed", delayed],
  [`KindstackDriftReturns${TENANTS}`, { [`kindstack_drift_repairs_total${TENANTS}`]: "0+1x120" }],
];

/** Whose series say how much or how often, and not when. */
const COUNTED = CASES.filter(([alert]) => alert !== LOOSENED);

/** Series of a process that starts so many minutes later, and counts from its start. */
function from(minute: number, series: Series): Series {
  return mapped(series, (values) => `_x${minute} ${values}`);
}

/** The first minutes of series. */
function until(minutes: number, series: Series): Series {
  return mapped(series, (values) => values.replace(/x120$/, `x${minutes}`));
}

function ofPod(pod: string, series: Series): Series {
  const labelled = (name: string) =>
    name.endsWith("}") ? name.replace("}", `,pod="${pod}"}`) : `${name}{pod="${pod}"}`;
  return Object.fromEntries(Object.entries(series).map(([name, values]) => [labelled(name), values]));
}

function mapped(series: Series, change: (values: string) => string): Series {
  return Object.fromEntries(Object.entries(series).map(([name, values]) => [name, change(values)]));
}

describe("the alerts, as Prometheus evaluates them", () => {
  it("are rules without a fault", () => {
    expect(promtool.check()).toMatch(/SUCCESS: \d+ rules found/);
  });

  it("are silent while all is well", () => promtool.expectFiring(WELL, 110, []));

  it.each(CASES)("%s fires when it should, and alone", (alert, series) => {
    promtool.expectFiring({ ...WELL, ...series }, 110, [alert]);
    expect(() => promtool.expectFiring({ ...WELL, ...series }, 3, [alert])).toThrow(); // not at once
  });

  it.each(COUNTED)("%s fires when the operator has just been installed", (alert, series) => {
    promtool.expectFiring(from(20, { ...WELL, ...series }), 110, [alert]);
  });

  it.each(COUNTED)("%s fires over a restart of the operator", (alert, series) => {
    const all = { ...WELL, ...series };
    promtool.expectFiring({ ...ofPod("old", until(50, all)), ...ofPod("new", from(51, all)) }, 115, [alert]);
  });

  it("fire for the first loosened mode that a process finds, also soon after its start", () => {
    const loosened = (samples: string) => ({ 'kindstack_mode_loosened_timestamp_seconds{kind="tenants"}': samples });
    const series = { ...ofPod("old", loosened("_x20 1200x10")), ...ofPod("new", loosened("_x51 3000x60")) };
    for (const minutes of [21, 52]) promtool.expectFiring({ ...WELL, ...series }, minutes, [LOOSENED]);
    for (const minutes of [19, 45, 70]) promtool.expectFiring({ ...WELL, ...series }, minutes, []);
  });

  it.each(CASES)("%s fires where one of two replicas has the reason, and alone", (alert, series) => {
    const others = Object.entries(WELL).filter(([name]) => !(name in series));
    const all = { ...ofPod("a", { ...WELL, ...series }), ...ofPod("b", Object.fromEntries(others)) };
    promtool.expectFiring(all, 110, [alert]);
    expect(() => promtool.expectFiring(all, 3, [alert])).toThrow();
  });

  it("are all among these", () => {
    const names = alertingRules().groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
    expect(CASES.map(([alert]) => alert.replace(/\{.*/, ""))).toEqual(names);
  });
});
