import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { statusOf } from "../../stacks/contract/kind";
import { useDirectory } from "../directories";
import { removeUntilGone, stackOf, untilCondition, untilReady } from "./conditions";
import { POD, podSet, uniqueName } from "./manifests";
import { client, requestUpdate } from "./objects";
import { useOperator } from "./operator";
import { PULUMI_TIMEOUT_MS } from "./platform-team";
import { PulumiProject } from "./pulumi";

/* What users do with Pulumi's CLI to stacks that a running operator manages: docs/hand-over.md has a table of it. */

const ROOT = path.resolve(__dirname, "../..");
const directory = useDirectory();
const keyring = path.join(directory, "keyring");
const operator = useOperator({
  args: ["--kinds", "all", "--kinds", path.join(ROOT, "examples/src/api-key")],
  env: { KEYRING_FOLDER: keyring },
});
let project: PulumiProject;
beforeAll(async () => {
  project = await PulumiProject.open({ PULUMI_BACKEND_URL: `file://${operator.stateDirectory}` });
});
afterAll(async () => {
  project.close();
  const definitions = await client.resourceType("apiextensions.k8s.io/v1", "CustomResourceDefinition");
  await client.delete(definitions, "apikeys.examples.kindstack.dev");
});

describe("a stack of a kind that finds what it made", () => {
  const gestures: [string, (stack: string) => Promise<unknown>][] = [
    ["state delete", (stack) => project.outputOf(stack, "state", "delete", "--all", "--force", "--yes")],
    [
      "stack import of an edited state",
      async (stack) => {
        const { deployment, ...others } = JSON.parse(await project.outputOf(stack, "stack", "export"));
        const file = path.join(directory, "edited.json");
        const resources = deployment.resources.slice(0, -1);
        fs.writeFileSync(file, JSON.stringify({ ...others, deployment: { ...deployment, resources } }));
        await project.outputOf(stack, "stack", "import", "--file", file);
      },
    ],
    [
      "state rename",
      async (stack) => {
        const { deployment } = JSON.parse(await project.outputOf(stack, "stack", "export"));
        await project.outputOf(stack, "state", "rename", deployment.resources.at(-1).urn, "renamed", "--yes");
      },
    ],
    ["stack rm --force", (stack) => project.outputOf(stack, "stack", "rm", "--force", "--yes")],
    ["stack rename", (stack) => project.outputOf(stack, "stack", "rename", uniqueName("renamed"))],
  ];

  it.each(gestures)(
    "is complete again after `pulumi %s`, and nothing is made twice",
    {
      timeout: PULUMI_TIMEOUT_MS,
    },
    async (_name, gesture) => {
      const object = podSet(uniqueName("beside"), 2);
      const stack = await stackOf(object);
      const pods = async () => {
        const { items } = await client.list(POD, { namespace: "default" });
        const own = items.filter(({ metadata }) => metadata.name.startsWith(`${object.metadata.name}-`));
        return own.map(({ metadata }) => metadata.uid).sort();
      };
      const before = await pods();
      expect(before).toHaveLength(2);

      await gesture(stack);
      await requestUpdate(object, "after");

      await eventually(async () => expect(statusOf(await untilReady(object)).lastHandledReconcile).toBe("after"));
      expect(await pods()).toEqual(before);
      await removeUntilGone(object);
      await eventually(async () => expect(await pods()).toEqual([]));
    },
  );
});

it("a stack with a plugin's resource that was renamed is missed, until it has its name again", {
  timeout: PULUMI_TIMEOUT_MS,
}, async () => {
  const name = uniqueName("beside");
  const key: Manifest = {
    ...{ apiVersion: "examples.kindstack.dev/v1", kind: "ApiKey" },
    ...{ metadata: { name, namespace: "default" }, spec: { label: name } },
  };
  const stack = await stackOf(key);
  const before = fs.readdirSync(keyring);
  const renamed = uniqueName("renamed");

  await project.outputOf(stack, "stack", "rename", renamed);
  await requestUpdate(key, "renamed");
  await untilCondition(key, "Synced", "False", "StateMissing");
  expect(fs.readdirSync(keyring)).toEqual(before);

  await project.outputOf(renamed, "stack", "rename", stack);
  await requestUpdate(key, "back");
  await eventually(async () => expect(statusOf(await untilReady(key)).lastHandledReconcile).toBe("back"));
  expect(fs.readdirSync(keyring)).toEqual(before);
});
