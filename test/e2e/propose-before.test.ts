import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import type { Report } from "../../src/preview/report";
import { eventually } from "../../src/testing/eventually";
import { statusOf } from "../../stacks/contract/kind";
import type { Plan } from "../../stacks/contract/plan";
import { controlPlane } from "../control-plane";
import { uniqueName } from "./manifests";
import { eventsAbout } from "./objects";
import { kindstack } from "./operator";
import { Proposals } from "./proposals";

/*
 * What is approved before it happens: the report of a preview names by digests what the operator would do, so that the change
 * does not wait once it comes. Nothing but exactly this is covered.
 */

const proposals = new Proposals();
const { operator } = proposals;
const kind = ["--kinds", proposals.folder];
const at = () => ({
  ...controlPlane().env,
  PULUMI_BACKEND_URL: `file://${operator.stateDirectory}`,
});

const [files, report] = ["files", "report.json"].map((part) => path.join(operator.directory, part)) as [string, string];

/** What the preview of a file with one object tells; the report is kept as a file. */
function previewed(name: string, spec: object, ...words: string[]): Report["objects"][number] | undefined {
  fs.mkdirSync(files, { recursive: true });
  const { apiVersion, kind: type } = proposals.type;
  const object = { apiVersion, kind: type, metadata: { name, namespace: proposals.namespace }, spec };
  fs.writeFileSync(path.join(files, "note.json"), JSON.stringify(object));
  fs.writeFileSync(report, kindstack(["preview", "-f", files, "--propose", "-o", "json", ...words, ...kind], at()));
  return (JSON.parse(fs.readFileSync(report, "utf8")) as Report).objects[0];
}

function approve(): void {
  kindstack(["approve", "--report", report, "--reason", "reviewed", ...kind]);
}

describe("a change that was approved as its preview has told", () => {
  it("is applied without waiting: a new object, and then a change of it", async () => {
    const name = uniqueName("note");
    const created = previewed(name, { text: "one" });
    approve();
    expect(created).toMatchObject({ action: "create", digest: expect.stringMatching(/^sha256:/) });
    await proposals.write(name, { text: "one" });
    const first = await proposals.untilSynced(name);
    expect(statusOf(first).stack?.approval).toMatchObject({ digest: created?.digest, reason: "reviewed" });

    const updated = previewed(name, { text: "two", extra: true });
    approve();
    expect(updated?.resources.map(({ operation }) => operation)).toEqual(["update", "create"]);
    await proposals.write(name, { text: "two", extra: true });
    const second = await proposals.untilSynced(name);
    expect(statusOf(second).stack?.approval?.digest).toBe(updated?.digest);
    expect((await proposals.made(name))?.text).toBe("two");
    const reasons = (await eventsAbout(second)).map(({ reason }) => reason);
    expect(reasons).not.toContain("WaitsForApproval");
  });

  it("waits when it is another one", async () => {
    const name = uniqueName("note");
    const reviewed = previewed(name, { text: "one" });
    approve();
    await proposals.write(name, { text: "another" });
    const plan = await proposals.untilWaiting(name);
    expect(plan.spec.digest).not.toBe(reviewed?.digest);
    expect(await proposals.made(name)).toBeUndefined();
    await proposals.write(name, { text: "one" });
    await proposals.untilSynced(name);
  });

  it("waits when the approval has expired", async () => {
    const name = uniqueName("note");
    const reviewed = previewed(name, { text: "one" });
    const expiresAt = new Date(Date.now() + 2_000).toISOString();
    await proposals.decide({ spec: { digest: reviewed?.digest, object: { name } } } as Plan, "Approve", { expiresAt });
    await eventually(() => expect(Date.now()).toBeGreaterThan(Date.parse(expiresAt)));
    await proposals.write(name, { text: "one" });
    const plan = await proposals.untilWaiting(name);
    expect(plan.spec).toMatchObject({ digest: reviewed?.digest, group: reviewed?.group });
  });
});

it("a deletion that was approved as its preview has told is done without waiting", async () => {
  const [name, kept] = [uniqueName("note"), uniqueName("note")];
  const labels = { team: kept };
  previewed(name, { text: "one" });
  approve();
  await proposals.write(name, { text: "one" });
  await proposals.untilSynced(name);
  await proposals.owner.mergePatch(proposals.type, name, proposals.namespace, { metadata: { labels } });
  const prune = ["--prune-selector", `team=${kept}`, "-n", proposals.namespace];
  previewed(kept, { text: "kept" }, ...prune);
  const shown = kindstack(["preview", "-f", files, "--propose", ...prune, ...kind], at());
  expect(shown).toMatch(/: delete\n {2}- delete ConfigMap .*\n {2}digest: sha256:/);
  approve();
  await proposals.owner.delete(proposals.type, name, proposals.namespace);
  await eventually(async () => expect(await proposals.find(name)).toBeUndefined());
  expect(await proposals.made(name)).toBeUndefined();
});
