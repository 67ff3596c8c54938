import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LiveObject, Manifest } from "../../../../providers/kubernetes/client";
import type { AdmissionRequest, AdmissionView } from "../../../../stacks/contract/admission";
import { MAX_WAITING, QuotaRoom } from "../../../../stacks/kinds/capsule-tenant/admission/quota-room";
import { quotasLabel, quotaWebhooks } from "../../../../stacks/kinds/capsule-tenant/admission/quotas";
import { asksOn } from "../../../../stacks/kinds/capsule-tenant/quota-asks";
import { stub } from "../../../stub";
import { creation } from "./admission-view";
import { labelled, oilTenant, quotaIn } from "./objects";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** The tenant oil with 10 Pods for its namespaces a and b, and what the caches show of them. */
class Oil {
  readonly room = new QuotaRoom();
  readonly quotas = new Map<string, LiveObject>();
  readonly patches: Manifest[] = [];
  failPatch = false;
  readonly #webhook = quotaWebhooks(this.room)[0];

  constructor() {
    this.set("a", { used: 0, hard: 5 });
    this.set("b", { used: 0, hard: 5 });
    this.patches.length = 0;
  }

  /** The API server's count of a namespace arrives. */
  set(namespace: string, { used, hard, enforced = hard }: { used: number; hard: number; enforced?: number }): void {
    const status = { hard: { pods: String(enforced) }, used: { pods: String(used) } };
    const annotations = this.quotas.get(namespace)?.metadata.annotations ?? {};
    const quota = quotaIn(namespace, { pods: String(hard) }, status, { annotations });
    this.quotas.set(namespace, quota);
    this.room.quotaChanged(quota, this.view);
  }

  readonly view = stub<AdmissionView>({
    client: stub<AdmissionView["client"]>({
      mergePatch: async (_type, name, namespace, patch: Partial<Manifest>) => {
        if (this.failPatch) throw new Error("no");
        const metadata = { ...patch.metadata, name, ...(namespace !== undefined && { namespace }) };
        this.patches.push({ apiVersion: "v1", kind: "ResourceQuota", ...patch, metadata });
        return {} as LiveObject;
      },
    }),
    get: (watch: string, key: string) => {
      if (watch === "quotas") return this.quotas.get(key.split("/")[0] ?? "");
      if (watch === "tenants")
        return key === "oil" ? oilTenant({ resourceQuotas: [{ hard: { pods: 10 } }] }) : undefined;
      return labelled(key);
    },
    byIndex: (watch: string, index: string, value: string) => {
      if (watch === "namespaces") return ["a", "b"].map((name) => labelled(name));
      return [...this.quotas.values()].filter(({ metadata }) => index === "tenant" || metadata.namespace === value);
    },
  });

  /** Creates a Pod. @returns how far it is */
  create(namespace: string, more: Partial<AdmissionRequest> = {}) {
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace }, spec: { containers: [{}] } };
    const request = creation(pod, more);
    const state = { decided: false, allowed: false };
    void Promise.resolve(this.#webhook?.review(request, this.view)).then((decision) => {
      state.decided = true;
      state.allowed = decision?.allowed ?? false;
    });
    return state;
  }

  /** What the namespace is to have, by the last ask. */
  asked(namespace: string): bigint | undefined {
    const patch = this.patches.filter(({ metadata }) => metadata.namespace === namespace).at(-1);
    const asks = patch && asksOn(patch as LiveObject).get("pods");
    return asks && asks.amount / 1_000_000_000n;
  }
}

/** The tenant oil, whose namespace a uses all of its share. */
function withoutRoom(): Oil {
  const oil = new Oil();
  oil.set("a", { used: 5, hard: 5 });
  return oil;
}

const soon = () => vi.advanceTimersByTimeAsync(25);
/** Then the API server counts by what was raised. */
const enforced = () => vi.advanceTimersByTimeAsync(120);
const ALLOWED = { decided: true, allowed: true };
const WAITS = { decided: false, allowed: false };

describe("a request in a namespace of a tenant with quotas", () => {
  it("is let through at once when it fits, with nothing written", async () => {
    const oil = new Oil();
    const pods = [0, 1, 2, 3, 4].map(() => oil.create("a"));
    await soon();
    expect(pods).toEqual(pods.map(() => ALLOWED));
    expect(oil.patches).toEqual([]);
  });

  it("waits when those before it, though not counted yet, have taken the share, and asks for room", async () => {
    const oil = new Oil();
    oil.set("a", { used: 4, hard: 5 });
    const [first, second, third] = [oil.create("a"), oil.create("a"), oil.create("a")];
    await soon();
    expect([first, second, third]).toEqual([ALLOWED, WAITS, WAITS]);
    expect(oil.asked("a")).toBe(7n);

    oil.set("a", { used: 5, hard: 7, enforced: 5 });
    await soon();
    expect(second).toEqual(WAITS);
    oil.set("a", { used: 5, hard: 7 });
    await soon();
    expect([second, third]).toEqual([WAITS, WAITS]);
    await enforced();
    expect([second, third]).toEqual([ALLOWED, ALLOWED]);
  });

  it("asks for more when others have taken what was made", async () => {
    const oil = withoutRoom();
    const pod = oil.create("a");
    await soon();
    expect(oil.asked("a")).toBe(6n);
    oil.set("a", { used: 6, hard: 6 });
    await soon();
    expect(pod).toEqual(WAITS);
    expect(oil.asked("a")).toBe(7n);
  });

  it("is let through after a moment when the tenant has not that much left, also while it waits", async () => {
    const oil = withoutRoom();
    oil.set("b", { used: 4, hard: 5 });
    const first = oil.create("a");
    await soon();
    expect(first).toEqual(WAITS);
    oil.set("b", { used: 5, hard: 5 });
    await vi.advanceTimersByTimeAsync(150);
    expect(first).toEqual(ALLOWED);
    const second = oil.create("a");
    await vi.advanceTimersByTimeAsync(100);
    expect(second).toEqual(ALLOWED);
  });

  it("asks when what was freed a moment ago is seen late", async () => {
    const oil = withoutRoom();
    oil.set("b", { used: 5, hard: 5 });
    const pod = oil.create("a");
    await soon();
    expect(oil.asked("a")).toBeUndefined();
    oil.set("b", { used: 3, hard: 5 });
    await soon();
    expect(oil.asked("a")).toBe(6n);
    await vi.advanceTimersByTimeAsync(200);
    expect(pod).toEqual(WAITS);
  });

  it("is let through when no room has come, before the API server gives up the webhook", async () => {
    const oil = withoutRoom();
    const pod = oil.create("a");
    await vi.advanceTimersByTimeAsync(3_400);
    expect(pod).toEqual(WAITS);
    await vi.advanceTimersByTimeAsync(200);
    expect(pod).toEqual(ALLOWED);
  });

  it("is let through when it cannot ask", async () => {
    const oil = new Oil();
    oil.failPatch = true;
    oil.set("a", { used: 5, hard: 5 });
    const pod = oil.create("a");
    await soon();
    expect(pod).toEqual(ALLOWED);
  });

  it("is decided by the caches of admission that was started again", async () => {
    const oil = withoutRoom();
    oil.create("a");
    await vi.advanceTimersByTimeAsync(3_600);
    const stopped = oil.quotas.get("a");
    const { view } = oil;
    Object.assign(oil, { view: { ...view } });
    view.get = (watch, key) => (watch === "quotas" ? stopped : oil.view.get(watch, key));
    oil.set("a", { used: 5, hard: 9 });
    const pod = oil.create("a");
    await enforced();
    expect(pod).toEqual(ALLOWED);
  });

  it("is let through as a dry run, and where no item counts it, with nothing written", async () => {
    const oil = withoutRoom();
    const decided = [oil.create("a", { dryRun: true }), oil.create("a", { resource: { group: "", name: "secrets" } })];
    await soon();
    expect(decided).toEqual([ALLOWED, ALLOWED]);
    expect(oil.patches).toEqual([]);
  });

  it("does not wait when too many of its tenant do", async () => {
    const oil = withoutRoom();
    const waiting = Array.from({ length: MAX_WAITING.perTenant }, () => oil.create("a"));
    const more = oil.create("a");
    await soon();
    expect(waiting.filter(({ decided }) => decided)).toEqual([]);
    expect(more).toEqual(ALLOWED);
  });

  it("keeps what it asked for until it is counted, and then no longer", async () => {
    const oil = withoutRoom();
    const pod = oil.create("a");
    await soon();
    oil.set("a", { used: 5, hard: 6 });
    await enforced();
    expect(pod).toEqual(ALLOWED);
    expect(oil.patches).toHaveLength(1);
    oil.set("a", { used: 6, hard: 6 });
    await vi.advanceTimersByTimeAsync(0);
    expect(oil.patches).toHaveLength(2);
    expect(oil.asked("a")).toBeUndefined();
  });

  it("keeps what it asked for no longer when it is never counted", async () => {
    const oil = withoutRoom();
    oil.create("a");
    await soon();
    oil.set("a", { used: 5, hard: 6 });
    await vi.advanceTimersByTimeAsync(900);
    expect(oil.asked("a")).toBe(6n);
    await vi.advanceTimersByTimeAsync(200);
    expect(oil.asked("a")).toBeUndefined();
  });

  it("leaves no ask behind when it waited in vain, and removes what others left", async () => {
    const oil = withoutRoom();
    const left = { "ask.kindstack.dev/gone": JSON.stringify({ pods: { used: "0", more: "9", since: 0, until: 1 } }) };
    Object.assign(oil.quotas.get("a")?.metadata.annotations ?? {}, left);
    oil.create("a");
    await vi.advanceTimersByTimeAsync(3_600);
    const [asked = {}, removed] = oil.patches.map(({ metadata }) => metadata.annotations);
    const own = Object.keys(asked).find((name) => name !== "ask.kindstack.dev/gone") ?? "";
    expect(asked).toEqual({ "ask.kindstack.dev/gone": null, [own]: expect.stringContaining("pods") });
    expect(removed).toMatchObject({ [own]: null });
    expect(oil.patches).toHaveLength(2);
  });
});

describe("the webhooks that make room", () => {
  it.each([
    [["pods", "count/pods", "requests.cpu", "limits.memory", "cpu", "hugepages-2Mi"], "workloads"],
    [["requests.storage", "gold.storageclass.storage.k8s.io/requests.storage", "services.nodeports"], "workloads"],
    [["pods", "configmaps"], "objects"],
    [["count/deployments.apps"], "objects"],
    [["count/services.example.com"], "objects"],
  ])("are asked by what quotas count: %j are %s", (resources, label) => {
    const hard = Object.fromEntries(resources.map((resource) => [resource, 1]));
    expect(quotasLabel([{ hard }])).toBe(label);
  });

  it("block nothing while no operator answers", () => {
    const webhooks = quotaWebhooks(new QuotaRoom());
    expect(webhooks.map(({ failurePolicy, timeoutSeconds }) => [failurePolicy, timeoutSeconds])).toEqual([
      ["Ignore", 5],
      ["Ignore", 5],
    ]);
  });
});
