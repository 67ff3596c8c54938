import { beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../src/testing/eventually";
import { recordedAuthors } from "../../stacks/contract/author-policy";
import { uniqueName } from "./manifests";
import { client, eventsAbout } from "./objects";
import { Proposals } from "./proposals";

/*
 * Two people for each change: who has made it may have the right to approve, and cannot approve it.
 */

const proposals = new Proposals({ args: ["--author-may-not-approve"] });

beforeAll(async () => {
  // The owner of the objects gets the right to approve as well.
  const RBAC = "rbac.authorization.k8s.io";
  const metadata = { name: "olga-approves", namespace: proposals.namespace };
  await client.create({
    ...{ apiVersion: `${RBAC}/v1`, kind: "RoleBinding", metadata },
    roleRef: { apiGroup: RBAC, kind: "Role", name: "jane" },
    subjects: [{ apiGroup: RBAC, kind: "User", name: "olga" }],
  });
  // Policies take a moment to be in force.
  await eventually(async () => {
    const probe = await proposals.write(uniqueName("probe"), { text: "one" });
    await proposals.owner.delete(proposals.type, probe.metadata.name, proposals.namespace);
    expect(recordedAuthors(probe)).toEqual(["olga"]);
  });
});

async function approveAsOwner(plan: Awaited<ReturnType<typeof proposals.untilWaiting>>): Promise<void> {
  const { approver } = proposals;
  proposals.approver = proposals.owner;
  try {
    await proposals.decide(plan, "Approve", { approver: "olga" });
  } finally {
    proposals.approver = approver;
  }
}

describe("the author of a change", () => {
  it("cannot approve it, is told so, and another user can", async () => {
    const name = uniqueName("note");
    await proposals.write(name, { text: "one" });
    const plan = await proposals.untilWaiting(name);
    expect(plan.spec.cause).toMatchObject({ reason: "Created", by: "olga" });
    await approveAsOwner(plan);
    const reason = "the approval by olga has no effect: the change is by olga, and needs the approval of another user";
    await eventually(async () => expect((await proposals.synced(name))?.message).toContain(reason));
    expect(await proposals.made(name)).toBeUndefined();
    const object = await proposals.find(name);
    await eventually(async () => {
      const told = (await eventsAbout(object as never)).filter(({ reason }) => reason === "ApprovalIgnored");
      expect(told).toMatchObject([{ type: "Warning", note: expect.stringContaining(reason) }]);
    });

    await proposals.decide(plan);
    await proposals.untilSynced(name);
    expect((await proposals.made(name))?.text).toBe("one");
  });

  it("may approve what the world has changed since, and no own change beside it", async () => {
    const name = uniqueName("note");
    await proposals.write(name, { text: "one" });
    await proposals.decide(await proposals.untilWaiting(name));
    await proposals.untilSynced(name);
    await proposals.drift(name, { text: "of another" });
    const drifted = await proposals.untilWaiting(name);
    expect(drifted.spec.cause.by).toBeUndefined();
    await approveAsOwner(drifted);
    await proposals.untilSynced(name);
    expect((await proposals.made(name))?.text).toBe("one");

    await proposals.drift(name, { text: "of yet another" });
    const former = await proposals.untilWaiting(name);
    await proposals.write(name, { text: "two" });
    const both = await proposals.untilWaiting(name, former);
    expect(both.spec.cause.by).toBe("olga");
    await approveAsOwner(both);
    await eventually(async () => expect((await proposals.synced(name))?.message).toContain("has no effect"));
    expect((await proposals.made(name))?.text).toBe("of yet another");
  });
});
