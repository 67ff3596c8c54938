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
import type { Condition } from "../../stacks/contract/condition";
import type { CommonStatus } from "../../stacks/contract/object";
import { capsuleTenant } from "../../stacks/kinds/capsule-tenant/kind";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { tenant } from "../../stacks/kinds/tenant/kind";
import { acme, marksOf, namespace, tenantObject } from "../objects";
import { oilTenant } from "../stacks/kinds/capsule-tenant/objects";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const adopted = namespace("acme-dev", marksOf(acme, { created: false }));
/** What caches that are up to date show. */
const shown = (objects: LiveObject[]) => ({ objects, isSeen: () => true, unserved: () => undefined });
const compose = (object: LiveObject, change: StatusChange = {}, owned: LiveObject[] = []) =>
  composeStatus(tenant, object, shown(owned), change, NOW);
const withStatus = (status: object): LiveObject => ({ ...tenantObject(), status });
const synced: Condition = {
  type: "Synced",
  status: "True",
  reason: "Succeeded",
  message: "all resources are up to date",
  observedGeneration: 1,
  lastTransitionTime: "2026-01-01T00:00:00Z",
};
const ready: Condition = { ...synced, type: "Ready", message: "all resources are up to date and ready" };
const stack = { name: "tenant.acme", program: "digest" };

describe("composeStatus", () => {
  it("adds to the standard fields what the kind says of the object and of what it owns", async () => {
    expect(
      await compose(withStatus({ stack, observedGeneration: 1, conditions: [ready, synced] }), {}, [adopted]),
    ).toEqual({
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
    const status = await composeStatus(capsuleTenant, oilTenant(), shown(namespaces), {}, NOW);
    const messages = status.conditions?.map(({ message }) => message) ?? [];
    expect(messages).toContainEqual(expect.stringContaining("waiting until the API server enforces"));
    expect(messages.filter((message) => message.length > 2_000)).toEqual([]);
  });

  it("drops the kind's fields of an earlier time that no longer hold", async () => {
    expect(await compose(withStatus({ adoptedNamespaces: ["gone"], namespaceCount: 7 }))).toMatchObject({
      namespaceCount: 0,
    });
    expect(await compose(withStatus({ adoptedNamespaces: ["gone"] }))).not.toHaveProperty("adoptedNamespaces");
  });

  it("says that the kind's report fails, and keeps the fields that were", async () => {
    const failing = {
      ...tenant,
      report: () => {
        throw new RangeError("no such field");
      },
    };
    const before = withStatus({ stack, namespaceCount: 7, conditions: [ready, synced] });
    expect(await composeStatus(failing, before, shown([]), {}, NOW)).toMatchObject({
      namespaceCount: 7,
      stack,
      conditions: [
        {
          type: "Ready",
          status: "False",
          reason: "InternalError",
          message: "the report of Tenant fails: no such field",
        },
        synced,
      ],
    });
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
      const { type, reason, message } = { type: "Ready", reason: "ProgramTimedOut", message: error.message };
      expect(status).toMatchObject({
        namespaceCount: 7,
        stack,
        conditions: [{ type, status: "False", reason, message: expect.stringContaining(message) }, synced],
      });
      expect(told).toEqual([error]);
    },
  );

  it("says that an update runs, or that only the author can help, as long as it is so, and of a pause", async () => {
    const types = (status: CommonStatus) => status.conditions?.map(({ type }) => type);
    const updating = await compose(withStatus({}), { conditions: updatingConditions("Creating", false) });
    expect(types(updating)).toEqual(["Ready", "Synced", "Reconciling"]);
    const succeeded = { conditions: SUCCEEDED_CONDITIONS };
    expect(types(await compose(withStatus(updating), succeeded))).toEqual(["Ready", "Synced"]);
    const refused = { errorClass: "terminal", reason: "WrongType", message: "no date" } as const;
    const stalled = await compose(withStatus(updating), { conditions: failedConditions([refused]) });
    expect(types(stalled)).toEqual(["Ready", "Synced", "Stalled"]);
    expect(types(await compose(withStatus(stalled), succeeded))).toEqual(["Ready", "Synced"]);
    expect(
      types(await compose(withStatus(updating), { conditions: pausedConditions(undefined, [], undefined) })),
    ).toEqual(["Ready", "Synced", "Paused"]);
    expect(
      types(await compose(withStatus({ conditions: [ready, synced] }), { conditions: [notSo("Reconciling")] })),
    ).toEqual(["Ready", "Synced"]);
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
  const object = (status: object): LiveObject => ({
    apiVersion: "cache.example.com/v1alpha1",
    kind: "Memcached",
    metadata: { name: "cache", namespace: "default", uid: "uid", resourceVersion: "1", generation: 3 },
    spec: { size: 1, containerPort: 11211 },
    status,
  });
  const conditionsOf = async (change: StatusChange, status: object = {}): Promise<CommonStatus["conditions"]> =>
    (await composeStatus(memcached, object(status), shown([]), change, NOW)).conditions;

  it("stand beside the standard ones and are of the present generation", async () => {
    const conditions = await conditionsOf({ conditions: SUCCEEDED_CONDITIONS });
    expect(conditions?.map(({ type }) => type)).toEqual(["Ready", "Synced", "Available", "Progressing", "Degraded"]);
    expect(conditions?.slice(2).every(({ observedGeneration }) => observedGeneration === 3)).toBe(true);
  });

  it("know why the last update failed", async () => {
    const failure = { errorClass: "retryable", reason: "Away", message: "the API server is away" } as const;
    expect(await conditionsOf({ conditions: failedConditions([failure]) })).toContainEqual(
      expect.objectContaining({ type: "Degraded", status: "True", message: "the API server is away" }),
    );
  });
});

describe("writeStatus", () => {
  const refusing = new Proxy({} as never, {
    get: () => {
      throw new Error("no request was expected");
    },
  });

  it("makes no request when nothing has changed", async () => {
    const object = withStatus(await compose(tenantObject(), { conditions: SUCCEEDED_CONDITIONS }));
    await expect(writeStatus(refusing, object, { ...(object.status as object) })).resolves.toBe(object);
  });
});
