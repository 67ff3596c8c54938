import { afterAll, beforeAll, expect, it } from "vitest";
import type { Manifest } from "../../../providers/kubernetes/client";
import { podSet } from "../../../stacks/kinds/podset/kind";
import { lostPolicies } from "../../../stacks/platform/lost-policies";
import { isModePolicy, platformManifests } from "../../../stacks/platform/manifests";
import { parseConfiguration } from "../../../stacks/platform/parse-configuration";
import { TestCluster } from "../../providers/kubernetes/test-cluster";

const KINDS = [podSet];
const cluster = TestCluster.use();
const configuration = () =>
  parseConfiguration({ namespace: cluster.namespace, passphrase: "p", authorMayNotApprove: "true" }, "1.2.3");

let policies: Manifest[] = [];
beforeAll(async () => {
  const manifests = await platformManifests(configuration(), KINDS);
  policies = manifests.filter(isModePolicy);
  const operator = manifests.filter(({ kind }) => kind === "Deployment");
  for (const manifest of [...operator, ...policies]) await cluster.client.apply(manifest);
});
afterAll(async () => {
  for (const policy of policies) await remove(policy);
});

const remove = ({ apiVersion, kind, metadata: { name = "" } }: Manifest) =>
  cluster.client.delete({ apiVersion, kind }, name);

const policy = (kind: string, name: string): Manifest => {
  const found = policies.find((one) => one.kind === kind && one.metadata.name?.startsWith(name));
  if (found === undefined) throw new Error(`no ${kind} ${name}`);
  return found;
};

/** As `kubectl edit` does. */
const edit = (policy: Manifest, spec: object) =>
  cluster.client.mergePatch(policy, policy.metadata.name ?? "", undefined, { spec });

it("finds all policies as they were installed, then names what was deleted or changed", async () => {
  expect(await lostPolicies(configuration(), KINDS, cluster.client)).toEqual([]);

  const deleted = policy("ValidatingAdmissionPolicy", "mode.podsets");
  const audited = policy("ValidatingAdmissionPolicyBinding", "finalizer.podsets");
  const narrowed = policy("ValidatingAdmissionPolicy", "plans");
  const mutation = policy("MutatingAdmissionPolicyBinding", "");
  await remove(deleted);
  await remove(mutation);
  await edit(audited, { validationActions: ["Audit"], matchResources: { resourceRules: [] } });
  await edit(narrowed, { matchConditions: [{ name: "never", expression: "false" }] });

  const named = await lostPolicies(configuration(), KINDS, cluster.client);
  const gone = "does not exist; apply the installation again";
  const changed = (fields: string) => `was changed (${fields}); delete it, and apply the installation again`;
  const expected: [Manifest, string][] = [
    [deleted, gone],
    [mutation, gone],
    [audited, changed("spec.validationActions, spec.matchResources")],
    [narrowed, changed("spec.matchConditions")],
  ];
  expect(named.toSorted()).toEqual(
    expected
      .map(
        ([
          {
            kind,
            metadata: { name },
          },
          what,
        ]) => `${kind} ${name} ${what}`,
      )
      .toSorted(),
  );

  for (const one of [audited, narrowed]) await remove(one);
  for (const one of policies) await cluster.client.apply(one);
  expect(await lostPolicies(configuration(), KINDS, cluster.client)).toEqual([]);
});
