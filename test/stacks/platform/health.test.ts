import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { LuaFactory } from "wasmoon";
import type { LiveObject } from "../../../providers/kubernetes/client";
import { tenantObject, withConditions } from "../../objects";

const script = fs.readFileSync(path.resolve(__dirname, "../../../deploy/argocd/health.lua"), "utf8");

const factory = new LuaFactory(); // loads the interpreter once

/** What Argo CD makes of an object: it runs the script with the global `obj`. */
async function healthOf(object: LiveObject): Promise<{ status: string; message: string }> {
  const lua = await factory.createEngine();
  try {
    lua.global.set("obj", JSON.parse(JSON.stringify(object)));
    return await lua.doString(script);
  } finally {
    lua.global.close();
  }
}

const ready = withConditions(tenantObject(), { Ready: ["True", "Succeeded"] });
const changed = <T extends LiveObject>(object: T, metadata: Partial<LiveObject["metadata"]>): T => ({
  ...object,
  metadata: { ...object.metadata, ...metadata },
});

const waiting = withConditions(tenantObject(), { Ready: ["True", "Succeeded"], Synced: ["False", "WaitsForApproval"] });

describe("Argo CD's health of an object", () => {
  it.each<[string, LiveObject, string, string]>([
    ["without a status", tenantObject(), "Progressing", "waiting for the operator"],
    ["that is Ready", ready, "Healthy", "Succeeded: Succeeded is so"],
    ["whose spec has changed since", changed(ready, { generation: 2 }), "Progressing", "waiting for the operator"],
    [
      "that is updated",
      withConditions(tenantObject(), { Ready: ["True", "Succeeded"], Reconciling: ["True", "Updating"] }),
      "Progressing",
      "Updating: Updating is so",
    ],
    [
      "that is made",
      withConditions(tenantObject(), { Ready: ["Unknown", "Creating"], Reconciling: ["True", "Creating"] }),
      "Progressing",
      "Creating: Creating is so",
    ],
    [
      "that failed and is tried again",
      withConditions(tenantObject(), { Ready: ["False", "Unreachable"], Reconciling: ["True", "Retrying"] }),
      "Degraded",
      "Unreachable: Unreachable is so",
    ],
    [
      "whose resources do not work yet",
      withConditions(tenantObject(), {
        Ready: ["False", "Progressing"],
        Synced: ["True", "Succeeded"],
        Reconciling: ["True", "Progressing"],
      }),
      "Progressing",
      "Progressing: Progressing is so",
    ],
    [
      "that is stalled",
      withConditions(tenantObject(), { Ready: ["False", "Conflict"], Stalled: ["True", "Conflict"] }),
      "Degraded",
      "Conflict: Conflict is so",
    ],
    [
      "that is paused",
      withConditions(tenantObject(), { Ready: ["True", "Succeeded"], Paused: ["True", "Paused"] }),
      "Suspended",
      "Paused: Paused is so",
    ],
    [
      "that is only observed, and would change",
      withConditions(tenantObject(), { Ready: ["True", "Succeeded"], Synced: ["False", "Observed"] }),
      "Suspended",
      "Observed: Observed is so",
    ],
    ["whose plan waits", waiting, "Suspended", "WaitsForApproval: WaitsForApproval is so"],
    [
      "whose deletion waits",
      changed(waiting, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
      "Suspended",
      "WaitsForApproval: WaitsForApproval is so",
    ],
    [
      "whose plan waited before it was changed again",
      changed(waiting, { generation: 2 }),
      "Progressing",
      "waiting for the operator",
    ],
    [
      "that is being deleted",
      changed(ready, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
      "Progressing",
      "Succeeded: Succeeded is so",
    ],
  ])("%s", async (_name, object, status, message) => {
    expect(await healthOf(object)).toEqual({ status, message });
  });
});
