import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { parse, stringify } from "yaml";

import { review } from "../../providers/kubernetes/access-review";
import { runCommand } from "../../src/cli/program";
import { installKinds } from "../../src/operator/install";
import { APPROVAL_TYPE, type Approval, expiryOf, MAX_APPROVED_PLANS } from "../../stacks/contract/approval";
import { kindName, kindType } from "../../stacks/contract/kind";
import { PLAN_TYPE, type Plan, type PlanSpec } from "../../stacks/contract/plan";
import { podSet } from "../../stacks/kinds/podset/kind";
import { tenant } from "../../stacks/kinds/tenant/kind";
import { controlPlane } from "../control-plane";
import { digest, planSpec } from "../controller/plans";
import { useDirectory } from "../directories";
import { NAMESPACE, TestCluster } from "../providers/kubernetes/test-cluster";
import { roleFor, userNamed } from "../rights";

const HOUR_MS = 3_600_000;

const cluster = TestCluster.use();
let other: string;
const folder = useDirectory();

beforeAll(async () => {
  await installKinds(cluster.client, [podSet, tenant]);
  other = `${cluster.namespace}-other`;
  await cluster.client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: other } });
});
afterAll(() => cluster.client.delete(NAMESPACE, other));
beforeEach(() => {
  vi.stubEnv("KUBECONFIG", controlPlane().kubeconfig);
});
afterEach(async () => {
  for (const { metadata } of (await cluster.client.list(PLAN_TYPE)).items) {
    await cluster.client.delete(PLAN_TYPE, metadata.name, metadata.namespace);
  }
  for (const { metadata } of (await cluster.client.list(APPROVAL_TYPE)).items) {
    await cluster.client.delete(APPROVAL_TYPE, metadata.name, metadata.namespace);
  }
});

async function plan(name: string, changes: Partial<PlanSpec> = {}, namespace = cluster.namespace): Promise<Plan> {
  const spec = planSpec({ ...kindType(podSet), name, namespace, uid: name, generation: 1 }, changes);
  const metadata = { name: `podset-${name}`, namespace };
  return (await cluster.client.create({ ...PLAN_TYPE, metadata, spec, status: { state: "Pending" } })) as Plan;
}

async function run(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const [stdout, stderr] = [process.stdout, process.stderr].map((stream) =>
    vi.spyOn(stream, "write").mockReturnValue(true),
  );
  try {
    const code = await runCommand(words);
    const text = (spy: typeof stdout) => spy?.mock.calls.map(([part]) => String(part)).join("") ?? "";
    return { code, stdout: text(stdout), stderr: text(stderr) };
  } finally {
    vi.restoreAllMocks();
  }
}

async function approvals(namespace = cluster.namespace): Promise<Approval[]> {
  return (await cluster.client.list(APPROVAL_TYPE, { namespace })).items as Approval[];
}

/** Runs a command for the PodSet of this name. */
const runFor = (name: string, command: string, ...words: string[]) =>
  run(command, "podsets", name, "-n", cluster.namespace, ...words);

it("kindstack plans shows what waits, the longest wait first, or one line for all with the same difference", async () => {
  const group = digest();
  const first = await plan("first", { cause: { reason: "Drifted", at: "2026-11-25T10:00:00Z" } });
  await plan("a", { group });
  await plan("b", { group }, other);

  const { stdout } = await run("plans");
  const [head, ...rows] = stdout.trimEnd().split("\n");
  expect(head).toMatch(/^OBJECT +CHANGES +STATE +CAUSE +SINCE +DIGEST$/);
  expect(rows[0]).toMatch(
    new RegExp(`^PodSet ${cluster.namespace}/first +1 update +Pending +Drifted +2026-11-25T10:00:00Z +sha256:\\w{12}$`),
  );
  expect(rows).toHaveLength(3);
  expect(JSON.parse((await run("plans", "-o", "json")).stdout)[0]).toMatchObject({
    digest: first.spec.digest,
    state: "Pending",
    object: { name: "first" },
  });

  const grouped = (await run("plans", "--group")).stdout.trimEnd().split("\n");
  expect(grouped).toHaveLength(3);
  expect(grouped[1]).toMatch(new RegExp(`^${group.slice(0, 19)} +2 +PodSet +1 update +2 Pending +SpecChanged `));
  expect((await run("plans", "-n", other)).stdout).not.toContain("first");
  expect((await run("plans", "-n", "default")).stdout).toBe("no plans in the namespace default\n");
});

describe("kindstack plan", () => {
  it("shows what is done to each resource, as a preview does, and the command that approves it", async () => {
    const { spec } = await plan("web");
    const { code, stdout } = await runFor("web", "plan");
    expect(code).toBe(0);
    expect(stdout).toContain("  ~ update Deployment default/web\n      spec.replicas: 1 → 2");
    expect(stdout).toContain("note: planned 2026-11-25T12:00:00Z because of SpecChanged");
    const command = `kindstack approve ${kindName(podSet)} web -n ${cluster.namespace} --digest ${spec.digest}`;
    expect(stdout).toMatch(new RegExp(`To approve it: ${command.replaceAll(".", "\\.")}\\n$`));
    const shown = { name: "web", action: "update", digest: spec.digest, group: spec.group };
    const { objects } = JSON.parse((await runFor("web", "plan", "-o", "json")).stdout);
    expect(objects).toMatchObject([shown]);

    expect(await run(...command.split(" ").slice(1))).toMatchObject({ code: 0 });
    const approved = { object: { kind: kindName(podSet), name: "web" }, digest: spec.digest, decision: "Approve" };
    expect(await approvals()).toMatchObject([{ spec: approved }]);
  });

  it("says how much of a large plan is not in it", async () => {
    const [step] = planSpec({ ...kindType(podSet), name: "large", uid: "u", generation: 1 }).steps;
    await plan("large", { steps: step === undefined ? [] : [{ ...step, omittedFields: 3 }], omitted: 7 });
    const { stdout } = await runFor("large", "plan");
    expect(stdout).toContain("note: 3 more fields of Deployment default/web\n");
    expect(stdout).toContain("note: 7 more resources\n");
  });

  it("says so when nothing waits", async () => {
    const { code, stderr } = await runFor("web", "plan");
    expect(code).toBe(1);
    expect(stderr).toContain(`PodSet ${cluster.namespace}/web has no plan: nothing of it waits for an approval`);
  });

  it("finds the plan of what has no namespace in the operator's", async () => {
    const metadata = { name: "tenant-acme", namespace: other };
    const spec = planSpec({ ...kindType(tenant), name: "acme", uid: "u", generation: 1 });
    await cluster.client.create({ ...PLAN_TYPE, metadata, spec, status: { state: "Pending" } });
    expect((await run("plan", "tenants.multitenancy", "acme")).stdout).toContain("Tenant acme");
    const { stdout } = await run("reject", "tenants.multitenancy", "acme", "--reason", "not now");
    expect(stdout).toMatch(/^rejected Tenant/);
    expect(await approvals(other)).toMatchObject([{ spec: { decision: "Reject", reason: "not now" } }]);
  });
});

describe("kindstack approve", () => {
  it("approves what waits now, for a day or as long as it is told, with a reason", async () => {
    const { spec } = await plan("web");
    const { stdout } = await runFor("web", "approve", "--yes", "--reason", "CHG-1", "--expires", "2h");
    expect(stdout).toContain(`approved PodSet ${cluster.namespace}/web ${spec.digest}, until `);
    const [approval] = await approvals();
    expect(approval?.spec).toMatchObject({ reason: "CHG-1", digest: spec.digest });
    const hours = (expiryOf(approval as Approval) - Date.parse(approval?.metadata.creationTimestamp ?? "")) / HOUR_MS;
    expect(hours).toBeCloseTo(2, 1);
  });

  it("approves nothing that it has not shown, where there is no terminal to ask on", async () => {
    const { spec } = await plan("web");
    const asked = await runFor("web", "approve");
    expect(asked.stdout).toContain("  ~ update Deployment default/web\n");
    expect(asked).toMatchObject({ code: 1, stderr: expect.stringContaining("approve this with --yes") });
    const group = await run("approve", "--group", spec.group);
    expect(group.stdout).toMatch(/update Deployment default\/web[\s\S]*PodSet .*\/web +1 update/);
    expect(group).toMatchObject({ code: 1, stderr: expect.stringContaining("approve this with --yes") });
    expect(await approvals()).toEqual([]);
  });

  it("lists a thousand plans of a group in one approval, and more in several", async () => {
    const group = digest();
    const count = MAX_APPROVED_PLANS + 1;
    const names = Array.from({ length: count }, (_, n) => `many-${n}`);
    for (let n = 0; n < count; n += 50) await Promise.all(names.slice(n, n + 50).map((name) => plan(name, { group })));
    const { stdout } = await run("approve", "--group", group, "--yes");
    expect(stdout).toContain(`approved 1000 plans in ${cluster.namespace}, ${group}`);
    expect(stdout).toContain(`approved 1 plan in ${cluster.namespace}, ${group}`);
    const listed = (await approvals()).map(({ spec: { digests = [] } }) => digests.length);
    expect(listed.sort()).toEqual([1, 1000]);
  });

  it("refuses a digest that is outdated, what does not wait, and words that name nothing", async () => {
    await plan("web");
    const outdated = await runFor("web", "approve", "--digest", digest());
    expect(outdated).toMatchObject({ code: 1, stdout: "" });
    expect(outdated.stderr).toContain(`PodSet ${cluster.namespace}/web has another plan by now, sha256:`);
    expect((await runFor("api", "approve")).stderr).toContain("nothing of it waits");
    expect((await run("approve", "--group", "sha256:0000")).stderr).toContain("no plan has the group sha256:0000");
    for (const words of [
      [],
      ["podsets"],
      ["podsets", "web", "--group", "1"],
      ["podsets", "web", "--expires", "soon"],
    ]) {
      expect((await run("approve", ...words)).code).toBe(2);
    }
    const late = await runFor("web", "approve", "--yes", "--expires", "31d");
    expect(late.stderr).toContain("must be at most 30 days from now");
    expect(await approvals()).toEqual([]);
  });

  it("approves a group at once, in each namespace that has such plans", async () => {
    const group = digest();
    const [a, b, c] = [await plan("a", { group }), await plan("b", { group }), await plan("c", { group }, other)];
    const { stdout } = await run("approve", "--group", group.slice(0, 19), "--yes");
    expect(stdout).toContain(`approved 2 plans in ${cluster.namespace}, ${group}`);
    expect(stdout).toContain(`approved 1 plan in ${other}, ${group}`);
    const digests = (plans: Plan[]) => plans.map(({ spec }) => spec.digest).sort();
    const listed = async (namespace: string) =>
      (await approvals(namespace)).map(({ spec }) => spec.digests?.toSorted());
    expect(await listed(cluster.namespace)).toEqual([digests([a, b])]);
    expect(await listed(other)).toEqual([digests([c])]);
  });

  it("approves what a report shows, before there is a plan", async () => {
    const file = join(folder, "report.json");
    const shown = await plan("web");
    const { stdout } = await runFor("web", "plan", "-o", "json");
    await writeFile(file, stdout);
    await cluster.client.delete(PLAN_TYPE, shown.metadata.name, cluster.namespace);
    expect((await run("approve", "--report", file, "--expires", "1h")).code).toBe(0);
    expect(await approvals()).toMatchObject([{ spec: { digest: shown.spec.digest } }]);
    await writeFile(file, "{}");
    expect((await run("approve", "--report", file)).stderr).toContain("is no report of kindstack preview");
  });

  it("refuses what its user has changed, and names of a group how many plans that concerns", async () => {
    type Status = { userInfo: { username: string } };
    const status = await review<Status>(cluster.client, "authentication.k8s.io/v1", "SelfSubjectReview", {});
    const user = status?.userInfo.username ?? "";
    const group = digest();
    const causedBy = (by: string) => ({ group, cause: { reason: "SpecChanged", by, at: "2026-11-25T12:00:00Z" } });
    await plan("own", causedBy(`olga, ${user}`));
    const refused = await runFor("own", "approve", "--yes");
    expect(refused.code).toBe(1);
    const advice = `another user must approve what ${user} has changed`;
    expect(refused.stderr).toContain(`your approval would have no effect: ${advice}`);
    expect((await run("approve", "--group", group, "--yes")).stderr).toContain("would have no effect");
    expect(await approvals()).toEqual([]);
    expect((await runFor("own", "reject")).code).toBe(0);

    const olgas = await plan("olgas", causedBy("olga"), other);
    const { code, stderr } = await run("approve", "--group", group, "--yes");
    expect(stderr).toContain(`1 of 2 plans stay, as they are your own: ${advice}`);
    expect(code).toBe(0);
    expect(await approvals(other)).toMatchObject([{ spec: { digests: [olgas.spec.digest], decision: "Approve" } }]);
  });

  it("says what a user lacks who may not approve", async () => {
    await plan("web");
    const name = `reader-of-${cluster.namespace}`;
    const place = { name, namespace: cluster.namespace };
    const rule = { apiGroups: ["kindstack.dev"], resources: ["plans", "approvals"], verbs: ["get", "list", "create"] };
    for (const manifest of roleFor([userNamed(name)], [rule], place)) await cluster.client.apply(manifest);
    const config = parse(await readFile(controlPlane().kubeconfig, "utf8")) as { users: { user: object }[] };
    for (const entry of config.users) entry.user = { ...entry.user, as: name };
    const file = join(folder, "kubeconfig");
    await writeFile(file, stringify(config));
    vi.stubEnv("KUBECONFIG", file);
    const approving = async () => (await runFor("web", "approve", "--yes")).stderr;
    const lacks = `you may not decide on plans in the namespace ${cluster.namespace}: `;
    await expect.poll(approving).toContain(lacks);
    const right = `takes the right to approve plans.kindstack.dev in the namespace ${cluster.namespace}`;
    expect(await approving()).toContain(right);
    expect((await run("plans")).code).toBe(1);
    expect((await run("plans", "-n", cluster.namespace)).stdout).toContain("web");
  });
});
