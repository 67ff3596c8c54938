import { describe, expect, it } from "vitest";
import type { PlannedChange } from "../../../src/automation/planned-changes";
import type { PlanDecision } from "../../../src/controller/plan-decision";
import { AUTHOR_ANNOTATION } from "../../../stacks/contract/annotations";
import { statusOf } from "../../../stacks/contract/kind";
import type { Mode } from "../../../stacks/contract/mode";
import { memcached } from "../../../stacks/kinds/memcached/kind";
import { DEPLOYMENT, destroyed, Harness, PLAN, reconciled } from "./harness";

describe("an object whose changes wait for an approval", () => {
  const deployment = (replicas: number) => ({ ...DEPLOYMENT, spec: { replicas } });
  const name = "deployment/cache";
  const change = (operation: PlannedChange["operation"], after = 3): PlannedChange => ({
    urn: `urn:pulumi:memcached.default.cache::kindstack::pulumi-nodejs:dynamic/kubernetes:Deployment::${name}`,
    type: "pulumi-nodejs:dynamic/kubernetes:Deployment",
    name,
    operation,
    old: { inputs: { manifest: deployment(1) }, outputs: { manifest: deployment(1) } },
    ...(operation !== "delete" && { inputs: { manifest: deployment(after) } }),
  });

  /** One that was applied, and whose spec has changed since. */
  async function changed(mode: Mode = "Propose", planned = [change("update")]): Promise<Harness> {
    const harness = await reconciled();
    harness.mode = mode;
    harness.planned = planned;
    harness.changeSpec();
    await harness.reconcile();
    return harness;
  }

  /** One that was applied, and whose deletion waits. */
  async function deletedLater(): Promise<Harness> {
    const harness = await changed("Propose", [change("same")]);
    harness.planned = [change("delete")];
    harness.delete();
    await harness.reconcile();
    return harness;
  }

  function decide(harness: Harness, decision: PlanDecision["decision"], digest = harness.plan?.spec.digest ?? "") {
    const at = "2026-01-01T00:00:00Z";
    const expiresAt = Date.now() + 60_000;
    harness.decisions.set(digest, { decision, approver: "jane", reason: "CHG-1", at, digest, expiresAt });
  }

  /** The plan that waits is approved, and the object reconciled for that. */
  async function approve(harness: Harness): Promise<void> {
    decide(harness, "Approve");
    await harness.reconcile();
  }

  it("has a plan, says so, and nothing is done", async () => {
    const harness = await changed();
    expect(harness.updates).toBe(1);
    expect(harness.plan).toMatchObject({
      status: { state: "Pending" },
      spec: {
        object: { kind: "Memcached", name: "cache", generation: 2 },
        cause: { reason: "SpecChanged" },
        actions: { create: 0, update: 1, replace: 0, delete: 0 },
        steps: [{ action: "update", fields: [{ path: "spec.replicas", from: "1", to: "3" }] }],
      },
    });
    expect(harness.synced()).toMatchObject({ status: "False", reason: "WaitsForApproval", observedGeneration: 2 });
    expect(harness.synced()?.message).toMatch(
      /^approve it with: kindstack approve memcacheds.cache.example.com cache -n default --digest sha256:\w+; update Deployment/,
    );
    expect(harness.reconciling()).toBeUndefined();
    expect(harness.ready()?.status).toBe("True");
    expect(harness.events.at(-1)).toBe("WaitsForApproval");
  });

  it("is previewed once while nothing changes, and writes nothing", async () => {
    const harness = await changed();
    const { previews, object } = harness;
    await harness.reconcile();
    expect(harness.previews).toBe(previews);
    expect(harness.object).toBe(object);
  });

  it("is applied once its digest is approved, and not its group's, held to the preview", async () => {
    const harness = await changed();
    decide(harness, "Approve", harness.plan?.spec.group);
    await harness.reconcile();
    expect(harness.updates).toBe(1);
    await approve(harness);
    expect(harness.updates).toBe(2);
    expect(harness.held).toEqual([undefined, PLAN]);
    expect(harness.plan).toBeUndefined();
    expect(harness.synced()?.status).toBe("True");
    expect(statusOf(harness.object).stack?.approval).toMatchObject({ approver: "jane", reason: "CHG-1" });
    expect(harness.events).toContain("Approved");
  });

  it("is applied for the cause of its plan, whatever else has changed meanwhile", async () => {
    const harness = await changed();
    harness.edit();
    await harness.reconcile();
    expect(harness.plan?.spec.cause.reason).toBe("SpecChanged");
    await approve(harness);
    expect(harness.causes).toEqual(["Creating", "Updating"]);
  });

  it("is not applied when it would do something else by then", async () => {
    const harness = await changed();
    const { digest } = harness.plan?.spec ?? {};
    decide(harness, "Approve");
    harness.planned = [change("update", 4)];
    await harness.reconcile();
    expect(harness.updates).toBe(1);
    expect(harness.plan?.spec.digest).not.toBe(digest);
    expect(harness.plan?.status.state).toBe("Pending");
  });

  it("tells of a rejection until that expires", async () => {
    const harness = await changed();
    decide(harness, "Reject");
    expect(await harness.reconcile()).toEqual({ requeueAfterMs: expect.any(Number) });
    expect(harness.synced()?.message).toMatch("rejected by jane: CHG-1 (until ");
    expect(harness.plan?.status).toMatchObject({ state: "Rejected", message: "CHG-1", decidedBy: "jane" });
    expect(harness.events.at(-1)).toBe("Rejected");
    harness.decisions.clear();
    await harness.reconcile();
    expect(harness.plan?.status.state).toBe("Pending");
    expect(harness.updates).toBe(1);
  });

  describe("where the author of a change may not approve it", () => {
    /** As the API server records it. */
    async function changedBy(authors: string | undefined): Promise<Harness> {
      const harness = await reconciled();
      harness.plans.authorMayNotApprove = true;
      harness.mode = "Propose";
      harness.planned = [change("update")];
      harness.changeSpec();
      harness.setMetadata({ annotations: authors === undefined ? {} : { [AUTHOR_ANNOTATION]: authors } });
      await harness.reconcile();
      return harness;
    }

    it.each(["jane", "olga\njane"])("is not applied by an approval of %j, and tells why once", async (authors) => {
      const harness = await changedBy(authors);
      const by = authors.replace("\n", ", ");
      expect(harness.plan?.spec.cause).toMatchObject({ reason: "SpecChanged", by });
      await approve(harness);
      await harness.reconcile();
      expect(harness.updates).toBe(1);
      const reason = `the approval by jane has no effect: the change is by ${by}, and needs the approval of another user`;
      expect(harness.synced()).toMatchObject({ reason: "WaitsForApproval", message: expect.stringContaining(reason) });
      expect(harness.plan?.status).toEqual({ state: "Pending", message: reason });
      expect(harness.events.filter((event) => event === "ApprovalIgnored")).toHaveLength(1);
    });

    it("is applied by another user's approval, and rejected by the author", async () => {
      const harness = await changedBy("olga");
      await approve(harness);
      expect(harness.updates).toBe(2);
      const own = await changedBy("jane");
      decide(own, "Reject");
      await own.reconcile();
      expect(own.plan?.status.state).toBe("Rejected");
    });

    it.each([undefined, ""])("waits where nothing has recorded who that is: %j", async (authors) => {
      const harness = await changedBy(authors);
      expect(harness.plan?.spec.cause.by).toBe("[unknown]");
      await approve(harness);
      expect(harness.updates).toBe(1);
      expect(harness.synced()?.message).toContain("it is not recorded who made the change");
    });

    it("still has its author when others delete its plan while the program changes", async () => {
      const harness = await changedBy("jane");
      harness.plan = undefined;
      await harness.reconcile();
      expect(harness.plan).toMatchObject({ spec: { cause: { by: "jane" } } });
      await approve(harness);
      expect(harness.updates).toBe(1);
    });

    it("has no author when the world changes after it was applied", async () => {
      const harness = await changedBy("jane");
      harness.mode = "Apply";
      await harness.reconcile();
      expect(harness.synced()?.status).toBe("True");
      harness.mode = "Propose";
      harness.edit();
      await harness.reconcile();
      expect(harness.plan?.spec.cause.reason).toBe("Drifted");
      expect(harness.plan?.spec.cause.by).toBeUndefined();
      const { updates } = harness;
      await approve(harness);
      expect(harness.updates).toBe(updates + 1);
    });
  });

  it("makes its plan again when others delete it", async () => {
    const harness = await changed();
    const digest = harness.plan?.spec.digest;
    harness.plan = undefined;
    await harness.reconcile();
    expect(harness).toMatchObject({ plan: { spec: { digest } } });
  });

  it("is recorded without a plan when there is nothing to do", async () => {
    const harness = await changed("Propose", [change("same")]);
    expect(harness.plan).toBeUndefined();
    expect(harness.held).toEqual([undefined, PLAN]);
    expect(harness.synced()?.status).toBe("True");
  });

  it("loses its plan when what it was for is taken back, and when the mode is loosened", async () => {
    const harness = await changed();
    harness.planned = [change("same")];
    harness.changeSpec(3);
    await harness.reconcile();
    expect(harness.plan).toBeUndefined();
    const loosened = await changed();
    loosened.mode = "Apply";
    await loosened.reconcile();
    expect(loosened.plan).toBeUndefined();
    expect(loosened.held).toEqual([undefined, undefined]);
  });

  it("needs no other approval for what remains of an update that failed on the way", async () => {
    const second = { ...change("update"), urn: "second", name: "second" };
    const harness = await changed("Propose", [change("update"), second]);
    harness.refusal = { errorClass: "retryable", reason: "Unreachable", message: "away" };
    await approve(harness);
    expect(harness.plan?.status.state).toBe("Applying");
    harness.refusal = undefined;
    harness.planned = [change("update")];
    await harness.reconcile();
    expect(harness.synced()?.status).toBe("True");
    expect(harness.plan).toBeUndefined();
  });

  it.each([
    ["a crash", (harness: Harness) => Object.assign(harness, { interrupted: true })],
    ["its status could be written", (harness: Harness) => Object.assign(harness, { refusedWrites: 2 })],
  ])("tells who has approved what was done before %s, also of an approval that has expired", async (_, disturb) => {
    const harness = await changed();
    disturb(harness);
    await approve(harness).catch(() => {});
    expect(harness.updates).toBe(2);
    harness.interrupted = false;
    harness.planned = [change("same")];
    harness.decisions.clear();
    await harness.reconcile();
    expect(statusOf(harness.object).stack?.approval).toMatchObject({ approver: "jane", reason: "CHG-1" });
    expect(harness.plan).toBeUndefined();
  });

  it("loses the plan that an operator applied and did not remove before it ended", async () => {
    const harness = await changed();
    harness.interrupted = true;
    await approve(harness);
    const { plan } = harness;
    harness.interrupted = false;
    await harness.reconcile();
    harness.plan = plan;
    harness.setMetadata({ annotations: { "kindstack.dev/paused": "true" } });
    await harness.reconcile();
    expect(harness.plan).toBeDefined();
    harness.setMetadata({ annotations: {} });
    await harness.reconcile();
    expect(harness.plan).toBeUndefined();
  });

  it("has no approver of what needs no approval, though another update was approved and begun", async () => {
    const harness = await changed("ProposeDestructive", [change("delete")]);
    harness.interrupted = true;
    await approve(harness);
    expect(harness.plan?.status.state).toBe("Applying");
    harness.interrupted = false;
    harness.planned = [change("update", 4)];
    await harness.reconcile();
    expect(harness.synced()?.status).toBe("True");
    expect(statusOf(harness.object).stack?.approval).toBeUndefined();
  });

  it.each([
    ["no other approval for what it has deleted before a crash, though the state still has it", true],
    ["another one for what others have changed since the crash", false],
  ])("needs %s", async (_, isGone) => {
    const harness = await deletedLater();
    harness.destroys.push(destroyed({}, { interrupted: true }));
    await approve(harness);
    expect(harness.plan?.status.state).toBe("Applying");

    if (isGone) harness.remove();
    else harness.edit();
    harness.destroys.push(destroyed());
    await harness.reconcile();
    expect(harness.released).toHaveLength(isGone ? 2 : 1);
    expect(harness.plan?.status.state).toBe(isGone ? undefined : "Pending");
  });

  it("stays when it is deleted, until that is approved", async () => {
    const harness = await deletedLater();
    expect(harness.plan?.spec).toMatchObject({ cause: { reason: "Deleted" }, actions: { delete: 1 } });
    expect(harness.synced()).toMatchObject({ status: "False", reason: "WaitsForApproval" });
    harness.destroys.push(destroyed());
    await approve(harness);
    expect(harness.released).toEqual([false]);
    expect(harness.held.at(-1)).toBe(PLAN);
    expect(harness.plan).toBeUndefined();
  });

  it("is terminal, and nothing is applied, where the API server serves no plans", async () => {
    const harness = new Harness(memcached, "digest", false);
    harness.mode = "Propose";
    harness.planned = [change("create")];
    expect(await harness.reconcile()).toBe("done");
    expect(harness.updates).toBe(0);
    expect(harness.synced()?.message).toMatch("the mode Propose needs the CRDs of plans and approvals");
    expect(harness.stalled()?.status).toBe("True");
  });
});
