import { expect, it } from "vitest";
import { ApiError, type LiveObject, type Manifest, type ObjectType } from "../../../providers/kubernetes/client";
import { podSet } from "../../../stacks/kinds/podset/kind";
import { lostPolicies } from "../../../stacks/platform/lost-policies";
import { platformManifests } from "../../../stacks/platform/manifests";
import { parseConfiguration } from "../../../stacks/platform/parse-configuration";
import { lookupOf } from "../../providers/kubernetes/lookup-of";

const BINDING = "ValidatingAdmissionPolicyBinding";
const configured = (values: Record<string, string> = {}) =>
  parseConfiguration({ backendUrl: "s3://state", passphrase: "p", ...values }, "1.2.3");

const withUid = (manifest: Manifest) =>
  ({ ...manifest, metadata: { ...manifest.metadata, uid: "u", resourceVersion: "1" } }) as LiveObject;

/** A reader of a cluster that has these objects, and refuses to list one kind. */
async function clusterWith(values: Record<string, string>, isThere: (manifest: Manifest) => boolean, forbidden = "") {
  const objects = (await platformManifests(configured(values), [podSet])).filter(isThere).map(withUid);
  return {
    get: async ({ kind }: ObjectType, name: string) =>
      lookupOf(objects.find((object) => object.kind === kind && object.metadata.name === name)),
    list: async ({ kind }: ObjectType) => {
      if (kind === forbidden) throw new ApiError(403, "Forbidden", "no");
      return { items: objects.filter((object) => object.kind === kind), resourceVersion: "1" };
    },
  };
}

const isKept = ({ kind, metadata }: Manifest) =>
  !(
    metadata.name === "mode.podsets.batch.tutorial.kubebuilder.io" ||
    (kind === BINDING && /^plans/.test(metadata.name ?? ""))
  );

const lost = [
  "ValidatingAdmissionPolicy mode.podsets.batch.tutorial.kubebuilder.io",
  `${BINDING} mode.podsets.batch.tutorial.kubebuilder.io`,
  `${BINDING} plans.kindstack.dev`,
].map((what) => `${what} does not exist; apply the installation again`);

it("names each policy and binding that an installation has lost", async () => {
  const client = await clusterWith({}, isKept);

  expect((await lostPolicies(configured(), [podSet], client)).toSorted()).toEqual(lost.toSorted());
  expect(await lostPolicies(configured(), [podSet], await clusterWith({}, () => true))).toEqual([]);
});

it("takes what it may not read for present", async () => {
  const client = await clusterWith({}, isKept, BINDING);

  expect(await lostPolicies(configured(), [podSet], client)).toEqual([lost[0]]);
});

it.each([
  ["there is no operator", {}, (manifest: Manifest) => manifest.kind !== "Deployment" && isKept(manifest)],
  ["the operator is of another version", { image: "kindstack:1.2.2" }, isKept],
  ["the operator has other arguments", { mode: "Propose" }, isKept],
])("misses nothing where %s", async (_, values, isThere) => {
  const client = await clusterWith(values, isThere);

  expect(await lostPolicies(configured(), [podSet], client)).toEqual([]);
});
