import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
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

const tenantWith = (...conditions: Parameters<typeof withConditions>[1][]) =>
  withConditions<LiveObject>(tenantObject(), ...conditions);

const changed = <T extends LiveObject>(object: T, metadata: Partial<LiveObject["metadata"]>): T => ({
  ...object,
  metadata: { ...object.metadata, ...metadata },
});

const DELETED = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const ready = tenantWith("Ready=True Succeeded");
const waiting = tenantWith("Ready=True Succeeded", "Synced=False WaitsForApproval");
const NOT_SEEN = "waiting for the operator";

it.each<[string, LiveObject, string, string]>([
  ["without a status", tenantObject(), "Progressing", NOT_SEEN],
  ["that is Ready", ready, "Healthy", "Succeeded"],
  ["whose spec has changed since", changed(ready, { generation: 2 }), "Progressing", NOT_SEEN],
  ["that is updated", tenantWith("Ready=True Succeeded", "Reconciling=True Updating"), "Progressing", "Updating"],
  ["that is made", tenantWith("Ready=Unknown Creating", "Reconciling=True Creating"), "Progressing", "Creating"],
  ["tried again", tenantWith("Ready=False Away", "Reconciling=True Retrying"), "Degraded", "Away"],
  [
    "whose resources do not work yet",
    tenantWith("Ready=False Progressing", "Synced=True Succeeded", "Reconciling=True Progressing"),
    "Progressing",
    "Progressing",
  ],
  ["that is stalled", tenantWith("Ready=False Conflict", "Stalled=True Conflict"), "Degraded", "Conflict"],
  ["that is paused", tenantWith("Ready=True Succeeded", "Paused=True Paused"), "Suspended", "Paused"],
  ["only observed", tenantWith("Ready=True Succeeded", "Synced=False Observed"), "Suspended", "Observed"],
  ["whose plan waits", waiting, "Suspended", "WaitsForApproval"],
  ["whose deletion waits", changed(waiting, DELETED), "Suspended", "WaitsForApproval"],
  ["whose plan waited before it was changed", changed(waiting, { generation: 2 }), "Progressing", NOT_SEEN],
  ["that is being deleted", changed(ready, DELETED), "Progressing", "Succeeded"],
])("Argo CD's health of an object %s", async (_name, object, status, reason) => {
  const message = reason === NOT_SEEN ? reason : `${reason}: ${reason} is so`;
  expect(await healthOf(object)).toEqual({ status, message });
});
