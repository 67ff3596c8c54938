import { describe, expect, it } from "vitest";
import type { ApiError, LiveObject } from "../../providers/kubernetes/client";
import { unknownKind } from "../../providers/kubernetes/type-absence";
import { failedConditions, SUCCEEDED_CONDITIONS, updatingConditions } from "../../src/controller/conditions";
import { composeStatus } from "../../src/controller/status";
import { findCondition } from "../../stacks/contract/condition";
import type { AnyKind } from "../../stacks/contract/kind";
import { objectId } from "../../stacks/contract/object";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { liveObject, memcachedObject } from "../objects";

const NOW = new Date("2026-01-02T03:04:05Z");
const LATER = new Date("2026-01-02T04:04:05Z");

const deployment = (availableReplicas: number, conditions: object[] = []): LiveObject => {
  const available = { type: "Available", status: availableReplicas > 1 ? "True" : "False" };
  const replicas = { replicas: 2, updatedReplicas: 2, readyReplicas: availableReplicas, availableReplicas };
  return liveObject({
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "cache", namespace: "default" } },
    spec: { replicas: 2 },
    status: { ...replicas, conditions: [available, ...conditions] },
  });
};
const works = deployment(2);
const starts = deployment(0);
const fails = deployment(0, [{ type: "Progressing", status: "False", reason: "ProgressDeadlineExceeded" }]);

interface Seen {
  owned?: LiveObject[];
  isSeen?: boolean;
  unserved?: ApiError;
  kind?: AnyKind;
  now?: Date;
}

/** A Memcached whose stack has a Deployment, after an update or another look. */
async function updated(
  conditions: Parameters<typeof composeStatus>[3]["conditions"],
  { owned = [works], isSeen = true, unserved, kind = memcached, now = NOW }: Seen = {},
  before: object = {},
): Promise<LiveObject> {
  const object = { ...memcachedObject(), status: before };
  const stack = { name: "s", program: "p", resources: [{ id: objectId(works), fields: "f" }] };
  const shown = { objects: owned, isSeen: () => isSeen, unserved: () => unserved };
  const change = { ...(conditions && { conditions }), stack };
  return { ...object, status: await composeStatus(kind, object, shown, change, now, () => {}) };
}

/** The kind with another rule of its own. */
const readyBy = (readyWhen: NonNullable<AnyKind["capabilities"]["readyWhen"]>): AnyKind => {
  return { ...memcached, capabilities: { ...memcached.capabilities, readyWhen } };
};

const conditionsOf = ({ status }: LiveObject) => (status as { conditions: never[] }).conditions;
const STANDARD = ["Ready", "Synced", "Reconciling", "Stalled"];
const summary = (object: LiveObject) =>
  STANDARD.flatMap((type) => {
    const condition = findCondition(conditionsOf(object), type);
    return condition === undefined ? [] : [`${type}=${condition.status} ${condition.reason}`];
  });
const messageOf = (object: LiveObject, type: string) => findCondition(conditionsOf(object), type)?.message;

describe("Ready", () => {
  it("is not, and the object is Reconciling, while what it made does not work yet", async () => {
    const waiting = await updated(SUCCEEDED_CONDITIONS, { owned: [starts] });
    const told = ["Ready=False Progressing", "Synced=True Succeeded", "Reconciling=True Progressing"];
    expect(summary(waiting)).toEqual(told);
    expect(messageOf(waiting, "Reconciling")).toBe("Deployment default/cache: 0 of 2 are available");
    expect(messageOf(waiting, "Ready")).toBe(messageOf(waiting, "Reconciling"));
  });

  it("follows what it made, however that changes, and keeps the rest", async () => {
    const waiting = await updated(SUCCEEDED_CONDITIONS, { owned: [starts] });
    const ready = await updated(undefined, { now: LATER }, waiting.status as object);
    expect(summary(ready)).toEqual(["Ready=True Succeeded", "Synced=True Succeeded"]);
    expect(findCondition(conditionsOf(ready), "Synced")?.lastTransitionTime).toBe("2026-01-02T03:04:05Z");
    expect(findCondition(conditionsOf(ready), "Ready")?.lastTransitionTime).toBe("2026-01-02T04:04:05Z");
    expect(summary(await updated(undefined, { owned: [starts] }, ready.status as object))).toEqual(summary(waiting));
  });

  it("says the same of the same: nothing is written, and no time moves", async () => {
    for (const owned of [[works], [starts], [fails], []]) {
      const first = await updated(SUCCEEDED_CONDITIONS, { owned });
      expect(await updated(SUCCEEDED_CONDITIONS, { owned, now: LATER }, first.status as object)).toEqual(first);
      expect(await updated(undefined, { owned, now: LATER }, first.status as object)).toEqual(first);
    }
  });

  it("is not, and the object is Stalled, when what it made has failed", async () => {
    const told = ["Ready=False ResourceFailed", "Synced=True Succeeded", "Stalled=True ResourceFailed"];
    expect(summary(await updated(SUCCEEDED_CONDITIONS, { owned: [fails] }))).toEqual(told);
  });

  it("is not while the caches have not seen what was applied", async () => {
    expect(summary(await updated(SUCCEEDED_CONDITIONS, { isSeen: false }))[0]).toBe("Ready=False Progressing");
    expect(summary(await updated(SUCCEEDED_CONDITIONS, { owned: [] }))[0]).toBe("Ready=False Progressing");
  });

  it("is unknown where the API server does not serve the type of what was applied, whatever a cache still shows", async () => {
    const unserved = unknownKind(works);
    const told = ["Ready=Unknown UnknownKind", "Synced=True Succeeded"];
    expect(summary(await updated(SUCCEEDED_CONDITIONS, { unserved }))).toEqual(told);
    expect(summary(await updated(SUCCEEDED_CONDITIONS, { unserved, owned: [] }))[0]).toBe("Ready=Unknown UnknownKind");
  });

  it("is as Synced is when that is not True, whatever works", async () => {
    const refused = { errorClass: "retryable", reason: "Away", message: "the API server is away" } as const;
    const away = ["Ready=False Away", "Synced=False Away", "Reconciling=True Retrying"];
    expect(summary(await updated(failedConditions([refused])))).toEqual(away);
    const creating = ["Ready=Unknown Creating", "Synced=Unknown Creating", "Reconciling=True Creating"];
    expect(summary(await updated(updatingConditions("Creating", false)))).toEqual(creating);
  });

  it("leaves the Reconciling of an update that runs", async () => {
    const ready = await updated(SUCCEEDED_CONDITIONS);
    const updating = await updated(updatingConditions("Updating", true), { owned: [starts] }, ready.status as object);
    const told = ["Ready=False Progressing", "Synced=True Succeeded", "Reconciling=True Updating"];
    expect(summary(updating)).toEqual(told);
  });

  it("goes by the kind's own rule where it has one", async () => {
    const waiting = await updated(SUCCEEDED_CONDITIONS, { kind: readyBy(() => ["the moon is not full"]) });
    expect(summary(waiting)[0]).toBe("Ready=False Progressing");
    expect(messageOf(waiting, "Ready")).toBe("the moon is not full");
    const other = await updated(SUCCEEDED_CONDITIONS, { owned: [starts], kind: readyBy(() => []) });
    expect(summary(other)[0]).toBe("Ready=True Succeeded");
  });

  it("says that the kind's own rule fails", async () => {
    const failing = readyBy(() => {
      throw new RangeError("no such Pod");
    });
    const status = await updated(SUCCEEDED_CONDITIONS, { kind: failing });
    expect(messageOf(status, "Ready")).toBe("readyWhen of Memcached fails: no such Pod");
  });

  it("names five of many", async () => {
    const kind = readyBy(() => ["a", "b", "c", "d", "e", "f", "g"]);
    const waiting = await updated(SUCCEEDED_CONDITIONS, { kind });
    expect(messageOf(waiting, "Ready")).toBe("a; b; c; d; e; and 2 more");
  });
});
