import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import {
  failedConditions,
  notSo,
  pausedConditions,
  SUCCEEDED_CONDITIONS,
  updatingConditions,
} from "../../src/controller/conditions";
import { composeStatus, type StatusChange, writeStatus } from "../../src/controller/status";
import { CodeEndedError } from "../../stacks/contract/code-ended";
import type { Condition, NewCondition } from "../../stacks/contract/condition";
import type { CommonStatus } from "../../stacks/contract/object";
import { capsuleTenant } from "../../stacks/kinds/capsule-tenant/kind";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { tenant } from "../../stacks/kinds/tenant/kind";
import { acme, marksOf, memcachedObject, namespace, tenantObject } from "../objects";
import { oilTenant } from "../stacks/kinds/capsule-tenant/objects";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const adopted = namespace("acme-dev", marksOf(acme, { created: false }));
/** What caches that are up to date show. */
const shown = (objects: LiveObject[]) => ({ objects, isSeen: () => true, unserved: () => undefined });
const compose = (object: LiveObject, change: StatusChange = {}, owned: LiveObject[] = []) =>
  composeStatus(tenant, object, shown(owned), change, NOW, () => {});
const withStatus = (status: object): LiveObject => ({ ...tenantObject(), status });
const succeeded = { status: "True", reason: "Succeeded", message: "all resources are up to date" } as const;
const written = { observedGeneration: 1, lastTransitionTime: "2026-01-01T00:00:00Z" };
const synced: Condition = { type: "Synced", ...succeeded, ...written };
const ready: Condition = { ...synced, type: "Ready", message: "all resources are up to date and ready" };
const stack = { name: "tenant.acme", program: "digest" };

describe("composeStatus", () => {
  it("adds to the standard fields what the kind says of the object and of what it owns", async () => {
    const before = withStatus({ stack, observedGeneration: 1, conditions: [ready, synced] });
    expect(await compose(before, {}, [adopted])).toEqual({
      namespaceCount: 1,
      adminEmail: "admin@acme.example",
      adoptedNamespaces: ["acme-dev"],
      observedGeneration: 1,
      stack,
      conditions: [ready, synced],
    });
  });

  it("leaves out lists that are empty and what is undefined, as the API server does", async () => {
    const status = await compose(tenantObject());
    expect(status).toEqual({ namespaceCount: 0, adminEmail: "admin@acme.example", conditions: [] });
  });

  it("shortens what the kind says in a condition, which the API server would not take", async () => {
    const namespaces = Array.from({ length: 1_000 }, (_, index) =>
      namespace(`${"oil-".repeat(14)}${index}`, { labels: { [OWNER_UID_LABEL]: oilTenant().metadata.uid } }),
    );
    const status = await composeStatus(capsuleTenant, oilTenant(), shown(namespaces), {}, NOW, () => {});
    const messages = status.conditions?.map(({ message }) => message) ?? [];
    expect(messages).toContainEqual(expect.stringContaining("waiting until the API server enforces"));
    expect(messages.filter((message) => message.length > 2_000)).toEqual([]);
  });

  it("drops the kind's fields of an earlier time that no longer hold", async () => {
    const status = await compose(withStatus({ adoptedNamespaces: ["gone"], namespaceCount: 7 }));
    expect(status).toMatchObject({ namespaceCount: 0 });
    expect(status).not.toHaveProperty("adoptedNamespaces");
  });

  it("says that the kind's report fails, and keeps the fields that were", async () => {
    const report = () => {
      throw new RangeError("no such field");
    };
    const before = withStatus({ stack, namespaceCount: 7, conditions: [ready, synced] });
    const status = await composeStatus({ ...tenant, report }, before, shown([]), {}, NOW, () => {});
    const message = "the report of Tenant fails: no such field";
    const failed = { type: "Ready", status: "False", reason: "InternalError", message };
    expect(status).toMatchObject({ namespaceCount: 7, stack, conditions: [failed, synced] });
  });

  it.each(["report", "validate", "readyWhen", "conditions"])(
    "tells of a %s that has not answered, whatever else is well, and when to ask again",
    async (name) => {
      const error = new CodeEndedError("ProgramTimedOut", `${name} of Tenant ran for 2 s`, 1_000);
      const ends = () => Promise.reject(error);
      const isCapability = name === "readyWhen" || name === "conditions";
      const kind = isCapability ? { ...tenant, capabilities: { [name]: ends } } : { ...tenant, [name]: ends };
      const before = withStatus({ stack, namespaceCount: 7, conditions: [ready, synced] });
      const told: unknown[] = [];
      const status = await composeStatus(kind, before, shown([]), {}, NOW, (ended) => told.push(ended));
      const message = expect.stringContaining(error.message);
      const failed = { type: "Ready", status: "False", reason: "ProgramTimedOut", message };
      expect(status).toMatchObject({ namespaceCount: 7, stack, conditions: [failed, synced] });
      expect(told).toEqual([error]);
    },
  );

  it("says that an update runs, or that only the author can help, as long as it is so, and of a pause", async () => {
    const refused = { errorClass: "terminal", reason: "WrongType", message: "no date" } as const;
    const composed = async (before: object, conditions: readonly NewCondition[]) => {
      const status = await compose(withStatus(before), { conditions });
      return { status, types: status.conditions?.map(({ type }) => type) };
    };
    const updating = await composed({}, updatingConditions("Creating", false));
    expect(updating.types).toEqual(["Ready", "Synced", "Reconciling"]);
    expect((await composed(updating.status, SUCCEEDED_CONDITIONS)).types).toEqual(["Ready", "Synced"]);
    const stalled = await composed(updating.status, failedConditions([refused]));
    expect(stalled.types).toEqual(["Ready", "Synced", "Stalled"]);
    expect((await composed(stalled.status, SUCCEEDED_CONDITIONS)).types).toEqual(["Ready", "Synced"]);
    const pausing = await composed(updating.status, pausedConditions(undefined, [], undefined));
    expect(pausing.types).toEqual(["Ready", "Synced", "Paused"]);
    const atRest = await composed({ conditions: [ready, synced] }, [notSo("Reconciling")]);
    expect(atRest.types).toEqual(["Ready", "Synced"]);
  });

  it("moves a condition's time only when its status changes", async () => {
    const before = withStatus({ conditions: [ready, synced] });
    const timeOf = async (change: StatusChange) => (await compose(before, change)).conditions?.[0]?.lastTransitionTime;
    expect(await timeOf({ conditions: SUCCEEDED_CONDITIONS })).toBe(ready.lastTransitionTime);
    expect(await timeOf({ conditions: failedConditions([]) })).toBe("2026-01-02T03:04:05Z");
  });

  it("keeps the own fields of an object that cannot be parsed, and still says what is wrong", async () => {
    const broken = { ...withStatus({ namespaceCount: 7, stack }), spec: { namespaces: "acme" } };
    const status = await compose(broken, { conditions: failedConditions([]) });
    expect(status).toMatchObject({ namespaceCount: 7, stack });
    expect(status.conditions?.map(({ type }) => type)).toEqual(["Ready", "Synced", "Reconciling"]);
  });
});

describe("the conditions of a kind's own", () => {
  const object = { ...memcachedObject({ generation: 3 }), status: {} };
  const conditionsOf = async (change: StatusChange): Promise<CommonStatus["conditions"]> =>
    (await composeStatus(memcached, object, shown([]), change, NOW, () => {})).conditions;

  it("stand beside the standard ones and are of the present generation", async () => {
    const conditions = await conditionsOf({ conditions: SUCCEEDED_CONDITIONS });
    expect(conditions?.map(({ type }) => type)).toEqual(["Ready", "Synced", "Available", "Progressing", "Degraded"]);
    expect(conditions?.slice(2).every(({ observedGeneration }) => observedGeneration === 3)).toBe(true);
  });

  it("know why the last update failed", async () => {
    const failure = { errorClass: "retryable", reason: "Away", message: "the API server is away" } as const;
    const degraded = { type: "Degraded", status: "True", message: "the API server is away" };
    const conditions = await conditionsOf({ conditions: failedConditions([failure]) });
    expect(conditions).toContainEqual(expect.objectContaining(degraded));
  });
});

it("writeStatus makes no request when nothing has changed", async () => {
  const without = {} as never;
  const object = withStatus(await compose(tenantObject(), { conditions: SUCCEEDED_CONDITIONS }));
  await expect(writeStatus(without, object, { ...(object.status as object) })).resolves.toBe(object);
});
