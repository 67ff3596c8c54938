import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import type { Report } from "../../src/preview/report";
import { eventually } from "../../src/testing/eventually";
import { statusOf } from "../../stacks/contract/kind";
import { controlPlane } from "../control-plane";
import { useDirectory } from "../directories";
import { kindstack } from "./operator";
import { Proposals } from "./proposals";

/*
 * What a changed program declares for live objects is approved before the program is rolled out: exactly these plans are applied
 * then, and what differs waits.
 */

const proposals = new Proposals();
const { operator } = proposals;
const directory = useDirectory();
const [fleet, declared, report] = ["fleet", "declared", "report"].map((name) =>
  path.join(directory, `${name}.json`),
) as [string, string, string];
const installed = path.join(directory, "installed", "note");
const branch = path.join(directory, "branch", "note");

it("applies what its fleet's preview has told, and lets wait what has changed since", async () => {
  const names = ["one", "two", "drifted", "changed"];
  for (const name of names) await proposals.write(name, { text: name });
  for (const name of names) await proposals.decide(await proposals.untilWaiting(name));
  for (const name of names) await proposals.untilSynced(name);

  for (const folder of [installed, branch])
    fs.cpSync(path.dirname(proposals.folder), path.dirname(folder), { recursive: true });
  // Of an object, its spec becomes another one as well.
  const more = `tone: Type.String({ default: "calm" })`;
  const source = path.join(branch, "index.ts");
  const text = fs.readFileSync(source, "utf8").replaceAll('"first"', '"second"');
  fs.writeFileSync(source, text.replace("Type.Optional(Type.Boolean())", `$&, ${more}`));
  kindstack(["fleet", "fetch", "--kinds", installed, "-n", proposals.namespace, "--to", fleet]);
  kindstack(["fleet", "run", fleet, "--kinds", branch, "--to", declared]);
  const env = { ...controlPlane().env, PULUMI_BACKEND_URL: `file://${operator.stateDirectory}` };
  kindstack(["preview", "--fleet", "--kinds", branch, "--propose", "--report", report], env);
  const whole = JSON.parse(fs.readFileSync(report, "utf8")) as Report;
  kindstack(["fleet", "submit", fleet, declared, "--kinds", installed, "--propose", "--report", report], env);
  const { objects, differences } = JSON.parse(fs.readFileSync(report, "utf8")) as Report;
  expect(differences).toMatchObject([{ action: "update", objects: { length: 4 } }]);
  expect(objects.map(({ digest }) => digest)).toEqual(names.map(() => expect.stringMatching(/^sha256:/)));
  expect(whole.objects.map(({ digest }) => digest)).toEqual(objects.map(({ digest }) => digest));
  kindstack(["approve", "--report", report, "--reason", "reviewed", "--kinds", installed]);

  await proposals.write("changed", { text: "otherwise" });
  await proposals.untilWaiting("changed");
  await proposals.drift("drifted", { text: "by hand" });
  await proposals.untilWaiting("drifted");
  proposals.edition("second", more);
  for (const name of ["one", "two"]) {
    await eventually(async () => expect((await proposals.made(name))?.edition).toBe("second"));
    const { digest } = objects.find((one) => one.name === name) ?? {};
    await eventually(async () => {
      const object = await proposals.find(name);
      expect(object && statusOf(object).stack?.approval).toMatchObject({ digest, reason: "reviewed" });
    });
  }
  for (const name of ["drifted", "changed"]) {
    await eventually(async () => {
      const plan = await proposals.untilWaiting(name);
      expect(plan.spec.steps.flatMap(({ fields }) => fields.map(({ path }) => path))).toContain("data.edition");
    });
    expect((await proposals.made(name))?.edition).toBe("first");
  }
});
