import { PassThrough } from "node:stream";
import { pino } from "pino";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { Identity } from "../../src/http/identity";
import { Owners } from "../../src/proxy/owners";
import { eventually } from "../../src/testing/eventually";
import { capsuleNamespaceView } from "../../stacks/kinds/capsule-tenant/namespace-view";

const alice: Identity = { username: "alice", groups: ["drillers"], extra: {} };
const robot: Identity = { username: "system:serviceaccount:ci:robot", groups: [], extra: {} };

function tenant(name: string, resourceVersion: number, owner: { kind: string; name: string }): LiveObject {
  const metadata = { name, uid: `uid-${name}`, resourceVersion: String(resourceVersion) };
  return { apiVersion: "capsule.clastix.io/v1alpha1", kind: "Tenant", metadata, spec: { owner } };
}

let owners: Owners;
let events: PassThrough;
const stop = { now: () => {} };

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  events = new PassThrough();
  owners = new Owners({
    client: {
      list: async () => ({
        items: [
          tenant("oil", 5, { kind: "User", name: "alice" }),
          tenant("gas", 6, { kind: "Group", name: "drillers" }),
          tenant("ci", 7, { kind: "ServiceAccount", name: robot.username }),
          tenant("odd", 8, { kind: "Group", name: "alice" }),
        ],
        resourceVersion: "10",
      }),
      watch: async () => events,
      revision: async () => "10",
    },
    type: { apiVersion: "capsule.clastix.io/v1alpha1", kind: "Tenant", plural: "tenants", namespaced: false },
    view: capsuleNamespaceView,
    logger: pino({ level: "silent" }),
  });
  const abort = new AbortController();
  const running = owners.informer.start(abort.signal);
  stop.now = () => {
    abort.abort();
    events.end();
  };
  await eventually(() => expect(owners.ready).toBe(true));
  return async () => {
    stop.now();
    await running;
    vi.useRealTimers();
  };
});

/** Sends an event, and waits until what follows it has been seen, too. */
async function send(type: string, object: LiveObject): Promise<void> {
  const contact = owners.informer.lastContact;
  vi.setSystemTime(contact + 1_000);
  events.write(`${JSON.stringify({ type, object })}\n`);
  await eventually(() => expect(owners.informer.lastContact).toBeGreaterThan(contact));
}

describe("the owners of tenants", () => {
  it("own them by name, as a member of a group, or as a service account, each by its own kind", () => {
    expect(owners.ownedBy(alice)).toEqual(["gas", "oil"]);
    expect(owners.ownedBy(robot)).toEqual(["ci"]);
    expect(owners.ownedBy({ username: "bob", groups: [], extra: {} })).toEqual([]);
    expect(owners.ownedBy({ username: "bob", groups: ["alice"], extra: {} })).toEqual(["odd"]);
  });

  it("are told once when they gain or lose a tenant, and not of what is not theirs", async () => {
    const [told, unconcerned, gone] = [vi.fn(), vi.fn(), vi.fn()];
    owners.follow(alice, ["gas", "oil"], told);
    owners.follow(robot, ["ci"], unconcerned);
    owners.follow(alice, ["gas", "oil"], gone)();
    await send("MODIFIED", tenant("oil", 11, { kind: "User", name: "alice" })); // its status, say
    expect(told).not.toHaveBeenCalled();
    await send("MODIFIED", tenant("oil", 12, { kind: "User", name: "bob" }));
    await send("DELETED", tenant("gas", 13, { kind: "Group", name: "drillers" }));
    expect(told).toHaveBeenCalledOnce();
    expect(unconcerned).not.toHaveBeenCalled();
    expect(gone).not.toHaveBeenCalled();
    expect(owners.ownedBy(alice)).toEqual([]);
  });

  it("are told at once when they own others already", () => {
    const told = vi.fn();
    owners.follow(alice, ["oil"], told);
    expect(told).toHaveBeenCalledOnce();
  });

  it("have to look again after a change of their tenants, and after what no one saw", async () => {
    expect(owners.changedSince(alice, "9")).toBe(true); // before the start
    expect(owners.changedSince(alice, "10")).toBe(false);
    await send("ADDED", tenant("water", 20, { kind: "User", name: "alice" }));
    expect(owners.changedSince(alice, "19")).toBe(true);
    expect(owners.changedSince(alice, "20")).toBe(false);
    expect(owners.changedSince(robot, "10")).toBe(false);
  });
});
