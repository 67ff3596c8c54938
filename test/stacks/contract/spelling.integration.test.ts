import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesClient, LiveObject, ObjectType } from "../../../providers/kubernetes/client";
import { installKinds } from "../../../src/operator/install";
import { eventually } from "../../../src/testing/eventually";
import {
  DELETION_POLICY_ANNOTATION,
  obeyedAnnotations,
  PAUSED_ANNOTATION,
  USER_ANNOTATIONS,
} from "../../../stacks/contract/annotations";
import { DEFINITION_TYPE } from "../../../stacks/contract/crd";
import { modePolicies } from "../../../stacks/contract/installed-definitions";
import { type AnyKind, kindName, kindType } from "../../../stacks/contract/kind";
import { isLooser, MODE_ANNOTATION, MODES, modeOfNamespace } from "../../../stacks/contract/mode";
import { objectAdmission } from "../../../stacks/contract/object-admission";
import { podSet } from "../../../stacks/kinds/podset/kind";
import { NAMESPACE, TestCluster } from "../../providers/kubernetes/test-cluster";
import { roleFor, userNamed } from "../../rights";

/*
 * What the API server's policies make of a value is what the operator reads in it: compared over generated spellings.
 */

const RBAC = "rbac.authorization.k8s.io";
const SEED = 20261127;

/** Of this file alone: its policies are in force in the whole cluster. */
const kind: AnyKind = { ...podSet, group: `spelling-${randomBytes(4).toString("hex")}.example.com` };
const type = kindType(kind);
/** An annotation policy of the same kind; the operator's own has a name of its own in the cluster. */
const annotationPolicies = objectAdmission([kind])
  .objects()
  .map((manifest) => ({
    ...manifest,
    metadata: { ...manifest.metadata, name: kind.group },
    ...(manifest.kind.endsWith("Binding") && {
      spec: { ...((manifest as LiveObject).spec as object), policyName: kind.group },
    }),
  }));

const cluster = TestCluster.use();
let editor: KubernetesClient;

beforeAll(async () => {
  await installKinds(cluster.client, [kind]);
  for (const manifest of annotationPolicies) await cluster.client.apply(manifest);
  const rules = [{ apiGroups: ["", kind.group], resources: ["*"], verbs: ["get", "patch", "update", "create"] }];
  for (const manifest of roleFor([userNamed(kind.group)], rules, { name: kind.group })) {
    await cluster.client.create(manifest);
  }
  editor = cluster.as(kind.group);
  const annotations = { [MODE_ANNOTATION]: "Propose" };
  await cluster.client.create({
    ...type,
    metadata: { name: "web", namespace: cluster.namespace, annotations },
    spec: { replicas: 1 },
  });
  await cluster.client.mergePatch(NAMESPACE, cluster.namespace, undefined, { metadata: { annotations } });
  // Policies take a moment to be in force.
  await eventually(async () => {
    await expect(set(type, { [MODE_ANNOTATION]: "Apply" })).rejects.toThrow("takes the right to approve");
    await expect(set(NAMESPACE, { [MODE_ANNOTATION]: "Apply" })).rejects.toThrow("takes the right to approve");
    await expect(set(type, { [PAUSED_ANNOTATION]: "yes" })).rejects.toThrow('"yes" must be true or false');
  });
});
afterAll(async () => {
  await editor.close();
  for (const policy of [...modePolicies([kind]).slice(0, 2), ...annotationPolicies]) {
    await cluster.client.delete(policy, policy.metadata.name ?? "");
  }
  for (const role of ["ClusterRole", "ClusterRoleBinding"]) {
    await cluster.client.delete({ apiVersion: `${RBAC}/v1`, kind: role }, kind.group);
  }
  await cluster.client.delete(DEFINITION_TYPE, kindName(kind));
});

function set(of: ObjectType, annotations: Record<string, string | null>, client = editor): Promise<LiveObject> {
  const [name, namespace] = of === NAMESPACE ? [cluster.namespace] : ["web", cluster.namespace];
  return client.mergePatch(of, name, namespace, { metadata: { annotations } });
}

/** What is a blank to one language or to none, and characters whose other case is an ASCII letter. */
const BLANKS = [
  ..." \t\n\r\v\f\0\u0085\u00a0\u1680\u180e\u2000\u200b\u2028\u2029\u202f\u205f\u2060\u3000\ufeff",
  "\\t",
  "\r\n",
  " ".repeat(101),
];
const LOOK_ALIKE: Record<string, string> = { s: "ſ", k: "\u212a", i: "İ", a: "а", e: "é", o: "ο", p: "ｐ" };

/** A word as people and attackers write it. */
function spelled(words: readonly string[]): fc.Arbitrary<string> {
  const blanks = fc.array(fc.constantFrom(...BLANKS), { maxLength: 2 }).map((parts) => parts.join(""));
  const word = fc
    .tuple(fc.constantFrom(...words), fc.infiniteStream(fc.integer({ min: 0, max: 30 })))
    .map(([text, chances]) =>
      [...text]
        .map((letter) => {
          const chance = chances.next().value ?? 0;
          if (chance === 0) return LOOK_ALIKE[letter.toLowerCase()] ?? "";
          return chance < 10 ? letter.toUpperCase() : chance < 20 ? letter.toLowerCase() : letter;
        })
        .join(""),
    );
  return fc.oneof(
    { weight: 8, arbitrary: fc.tuple(blanks, word, blanks).map((parts) => parts.join("")) },
    { weight: 1, arbitrary: fc.tuple(word, word).map((parts) => parts.join("")) },
    { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 12 }) },
  );
}

/** Whether a write is stored; anything but a policy's refusal is a failure of the test. */
async function isStored(write: Promise<unknown>): Promise<boolean> {
  try {
    await write;
    return true;
  } catch (error) {
    expect(String(error)).toMatch(/ValidatingAdmissionPolicy .* denied request/);
    return false;
  }
}

const runs = { numRuns: 250, seed: SEED };

describe("a policy and the operator", () => {
  it.each([
    ["an object", type, (object: LiveObject) => obeyedAnnotations(object)],
    ["a namespace", NAMESPACE, modeOfNamespace],
  ] as const)(
    "agree about the mode of %s: who may not approve loosens none, in any spelling",
    async (_, of, readBy) => {
      let stored = 0;
      await fc.assert(
        fc.asyncProperty(spelled(MODES), async (text) => {
          const read = readBy({
            ...type,
            metadata: { name: "web", uid: "", resourceVersion: "", annotations: { [MODE_ANNOTATION]: text } },
          });
          const isAllowed = read.mode !== undefined && !isLooser(read.mode, "Propose");
          expect([text, await isStored(set(of, { [MODE_ANNOTATION]: text }))]).toEqual([text, isAllowed]);
          if (!isAllowed) return;
          stored++;
          await set(of, { [MODE_ANNOTATION]: "Propose" }, cluster.client);
        }),
        runs,
      );
      expect(stored).toBeGreaterThan(10);
    },
  );

  it("refuse the byte-order mark that loosened a mode", async () => {
    for (const of of [type, NAMESPACE]) {
      await expect(set(of, { [MODE_ANNOTATION]: "Apply\ufeff" })).rejects.toThrow(
        "must be Apply or ProposeDestructive or Propose or Observe",
      );
    }
  });

  it.each([PAUSED_ANNOTATION, DELETION_POLICY_ANNOTATION])("agree about %s in any spelling", async (key) => {
    let stored = 0;
    await fc.assert(
      fc.asyncProperty(spelled(USER_ANNOTATIONS[key]?.words ?? []), async (text) => {
        const { problem } = obeyedAnnotations({ metadata: { name: "web", annotations: { [key]: text } } });
        expect([text, await isStored(set(type, { [key]: text }))]).toEqual([text, problem === undefined]);
        if (problem !== undefined) return;
        stored++;
        await set(type, { [key]: null });
      }),
      runs,
    );
    expect(stored).toBeGreaterThan(10);
  });

  it("agree about which keys are Kindstack's, in any case, and that none is a label", async () => {
    const keys = ["kindstack.dev/paused", "Kindstack.dev/paused", "KINDSTACK.DEV/Mode", "\u212aindstack.dev/mode"];
    for (const key of keys) {
      const { problem } = obeyedAnnotations({ metadata: { name: "web", annotations: { [key]: "true" } } });
      expect([key, await isStored(set(type, { [key]: "true" }))]).toEqual([key, problem === undefined]);
      await set(type, { [key]: null });
    }
    const labels = { [MODE_ANNOTATION]: "Observe" };
    const labelled = editor.mergePatch(type, "web", cluster.namespace, { metadata: { labels } });
    await expect(labelled).rejects.toThrow(`label ${MODE_ANNOTATION}: it must be an annotation`);
    expect(obeyedAnnotations({ metadata: { name: "web", labels } }).problem).toContain("must be an annotation");
  });
});
