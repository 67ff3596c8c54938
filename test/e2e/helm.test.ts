import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { resolveBinary } from "../../src/toolchain/resolve";
import { objectId } from "../../stacks/contract/object";
import { testTools } from "../tools";
import { blocksOf } from "./blocks";
import { untilGone } from "./conditions";
import { MAIN, missing, Reader } from "./documentation";
import { namespace } from "./manifests";
import { find, remove } from "./objects";

/* Helm itself and kubectl in turn, by the commands of docs/install.md. Nothing runs in the cluster: it has no node. */
const NAMESPACE = "kindstack-system";
const reader = new Reader();
/** What the page has `values.yaml` for. */
const VALUES = "backendFromSecret: true\npostgresTables: students\n";
const APPLY = "npx kindstack install --print --values values.yaml | kubectl apply --server-side -f -";
const commands = blocksOf("docs/install.md")
  .filter(({ heading }) => heading === "Between kubectl and Helm")
  .flatMap(({ text }) => text.trimEnd().split("\n"));
let installed: Manifest[] = [];

beforeAll(async () => {
  await reader.open(MAIN);
  fs.symlinkSync(await resolveBinary(testTools.helm), path.join(reader.directory, "bin", "helm"));
  fs.writeFileSync(path.join(reader.home, "values.yaml"), VALUES);
  await reader.run(`export HELM_CACHE_HOME=${reader.directory}/helm
    npx kindstack install --chart chart --values values.yaml`);
  const text = await reader.run("npx kindstack install --print --values values.yaml");
  installed = parseAllDocuments(text).map((document) => document.toJS() as Manifest);
});
afterAll(async () => {
  for (const manifest of installed) if (manifest.kind !== "CustomResourceDefinition") await remove(manifest);
  await untilGone(namespace(NAMESPACE));
  await reader.close();
});

const command = (part: string) => {
  const found = commands.filter((one) => one.includes(part));
  expect(found).toHaveLength(1);
  return found[0] ?? "";
};

/** All that is installed, by id, which must be there. */
async function live(): Promise<Map<string, LiveObject>> {
  const objects = await Promise.all(
    installed.map(async (manifest) => [objectId(manifest), await find(manifest)] as const),
  );
  expect(objects.filter(([, object]) => object === undefined).map(([id]) => id)).toEqual([]);
  return new Map(objects as [string, LiveObject][]);
}

const uids = (objects: ReadonlyMap<string, LiveObject>) =>
  new Map([...objects].map(([id, { metadata }]) => [id, metadata.uid]));
/** A Deployment's generation counts its annotations as well. */
const specs = (objects: ReadonlyMap<string, LiveObject>) => new Map([...objects].map(([id, { spec }]) => [id, spec]));
const releaseOf = (objects: ReadonlyMap<string, LiveObject>) =>
  new Set(
    [...objects.values()]
      .filter(({ kind }) => kind !== "Namespace")
      .map(({ metadata }) => metadata.annotations?.["meta.helm.sh/release-name"]),
  );

describe.skipIf(missing.length > 0)(`an installation (${missing.join(", ") || "nothing"} is missing)`, () => {
  it("by the chart is accepted by the API server, every field of it", async () => {
    await reader.run(`kubectl create namespace ${NAMESPACE}
      helm template kindstack ./chart --namespace ${NAMESPACE} > chart.yaml
      kubectl apply --dry-run=server -f chart.yaml
      kubectl apply --dry-run=server --server-side -f chart.yaml`);
  });

  it("by kubectl is the same the second time", async () => {
    await reader.run(APPLY);
    const before = await live();
    await reader.run(APPLY);
    expect(specs(await live())).toEqual(specs(before));
  });

  it("goes from kubectl to Helm, which does not take it by itself", async () => {
    const before = await live();
    const install = command("helm install kindstack");
    await expect(reader.run(install.replace(" --take-ownership", ""))).rejects.toThrow("cannot be imported");
    await reader.run(install);

    const after = await live();
    expect(uids(after)).toEqual(uids(before));
    expect(releaseOf(after)).toEqual(new Set(["kindstack"]));
    expect(specs(after)).toEqual(specs(before)); // nothing restarts
  });

  it("is upgraded, and rolled back", async () => {
    const level = async () => {
      const deployment = [...(await live()).values()].find(({ kind }) => kind === "Deployment");
      return /"KINDSTACK_LOG_LEVEL","value":"(\w+)"/.exec(JSON.stringify(deployment?.spec))?.[1];
    };
    const before = uids(await live());
    await reader.run(command("helm upgrade"));
    expect(await level()).toBe("debug");
    await reader.run(command("helm rollback"));
    expect(await level()).toBe("info");
    expect(uids(await live())).toEqual(before);
  });

  it("is reinstalled under another name, with the CRDs and policies that were left", async () => {
    const before = await live();
    await reader.run(command("helm uninstall"));
    const left = await Promise.all(installed.map(find)).then((found) => found.filter((object) => object !== undefined));
    expect(new Set(left.map(({ kind }) => kind))).toEqual(
      new Set([
        ...["Namespace", "CustomResourceDefinition"],
        ...["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"],
      ]),
    );
    await reader.run(command("helm install operator"));

    const after = await live();
    expect(releaseOf(after)).toEqual(new Set(["operator"]));
    for (const { kind, metadata } of left) {
      const same = [...after.values()].find((one) => one.kind === kind && one.metadata.name === metadata.name);
      expect(same?.metadata.uid).toBe(metadata.uid);
    }
    expect([...after.keys()].sort()).toEqual([...before.keys()].sort());
  });

  it("goes back to kubectl, which conflicts with Helm once", async () => {
    const before = await live();
    await reader.run(command("kubectl delete secrets"));
    expect(await reader.run(`helm list --all --namespace ${NAMESPACE} -q`)).toBe("");
    await reader.run(command("--force-conflicts"));
    await reader.run(APPLY);

    const after = await live();
    expect(uids(after)).toEqual(uids(before));
    expect(specs(after)).toEqual(specs(before));
  });
});
