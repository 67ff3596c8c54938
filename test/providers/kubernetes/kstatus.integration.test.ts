import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, it } from "vitest";
import { healthOf } from "../../../providers/kubernetes/kstatus";
import type { LiveObject } from "../../../providers/kubernetes/types";
import { resolveBinary } from "../../../src/toolchain/resolve";
import { testTools } from "../../tools";

const OBJECTS = 1_500;

const count = fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined });
const truth = fc.constantFrom("True", "False", "Unknown");
const reason = fc.constantFrom("Any", "ProgressDeadlineExceeded", "NewReplicaSetAvailable", "Installing");
/** In the order of these types: kstatus goes by the first of two that contradict each other. */
const conditions = (...types: string[]) =>
  fc
    .tuple(...types.map((type) => fc.option(fc.record({ type: fc.constant(type), status: truth, reason }))))
    .map((all) => all.filter((condition) => condition !== null));
const counts = (...fields: string[]) => fc.record(Object.fromEntries(fields.map((field) => [field, count])));
const statusOf = (fields: fc.Arbitrary<object>, ...types: string[]) =>
  fc
    .record({
      fields,
      conditions: conditions("Ready", "Reconciling", "Stalled", ...types),
      observedGeneration: fc.constantFrom(undefined, 1, 2),
    })
    .map(({ fields, ...status }) => ({ ...fields, ...status }));

const replicas = fc.record({ replicas: count });
const state = fc.constantFrom(
  { running: {} },
  ...["CrashLoopBackOff", "Other"].map((reason) => ({ waiting: { reason } })),
);
const containers = fc.array(fc.record({ name: fc.constantFrom("a", "b"), state }), { maxLength: 2 });
const none = fc.constant({});
const phase = fc.constantFrom(undefined, "Pending", "Running", "Succeeded");
const revision = fc.constantFrom("a", "b");
const ROLLING = { type: "RollingUpdate" };
const updateStrategy = fc.constantFrom<unknown[]>(
  ...[undefined, { type: "OnDelete" }, ROLLING],
  ...[0, 1].map((partition) => ({ ...ROLLING, rollingUpdate: { partition } })),
);

/** By type: its spec, and its status. What this project says otherwise than kstatus is left out. */
const TYPES: Record<string, [spec: fc.Arbitrary<object>, status: fc.Arbitrary<object>]> = {
  "apps/v1/Deployment": [
    fc.record({ replicas: count, progressDeadlineSeconds: fc.constantFrom(undefined, 600, 2 ** 31 - 1) }),
    statusOf(counts("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), "Progressing", "Available"),
  ],
  "apps/v1/ReplicaSet": [
    replicas,
    statusOf(counts("replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas"), "ReplicaFailure"),
  ],
  "apps/v1/StatefulSet": [
    fc.record({ replicas: count, updateStrategy }),
    statusOf(
      fc.record({
        ...{ replicas: count, readyReplicas: count, currentReplicas: count, updatedReplicas: count },
        ...{ currentRevision: revision, updateRevision: revision },
      }),
    ),
  ],
  "apps/v1/DaemonSet": [
    none,
    statusOf(
      counts(
        ...["desiredNumberScheduled", "currentNumberScheduled"],
        ...["updatedNumberScheduled", "numberAvailable", "numberReady"],
      ),
    ),
  ],
  "v1/Pod": [none, statusOf(fc.record({ phase, containerStatuses: containers }), "PodScheduled")],
  "batch/v1/Job": [
    none,
    statusOf(fc.record({ startTime: fc.constantFrom(undefined, "2026-01-01T00:00:00Z") }), "Complete", "Failed"),
  ],
  "v1/Service": [fc.record({ type: fc.constantFrom("ClusterIP", "ExternalName") }), statusOf(none)],
  "apiextensions.k8s.io/v1/CustomResourceDefinition": [none, statusOf(none, "NamesAccepted", "Established")],
  "example.com/v1/Thing": [none, statusOf(none)],
  "policy/v1/PodDisruptionBudget": [none, statusOf(none)],
  "v1/ConfigMap": [none, none],
  "rbac.authorization.k8s.io/v1/RoleBinding": [none, none],
};

const objects: fc.Arbitrary<LiveObject> = fc.constantFrom(...Object.keys(TYPES)).chain((type) => {
  const [spec, status] = TYPES[type] ?? [fc.constant({}), fc.constant({})];
  const split = type.lastIndexOf("/");
  return fc.record({
    apiVersion: fc.constant(type.slice(0, split)),
    kind: fc.constant(type.slice(split + 1)),
    metadata: fc.option(fc.constant({ deletionTimestamp: "2026-01-01T00:00:00Z" }), { freq: 9 }).map((ending) => ({
      ...{ name: "a", namespace: "default", uid: "u", resourceVersion: "1", generation: 2 },
      ...ending,
    })),
    spec,
    status,
  }) as fc.Arbitrary<LiveObject>;
});

it(`kstatus says the same of ${OBJECTS} generated objects`, async () => {
  const path = await resolveBinary(testTools.kstatus);
  const sample = JSON.parse(JSON.stringify(fc.sample(objects, { numRuns: OBJECTS, seed: 46 }))) as LiveObject[];
  const output = execFileSync(path, { input: JSON.stringify(sample), encoding: "utf8", maxBuffer: 1 << 26 });
  const theirs = JSON.parse(output) as string[];

  const ours = sample.map((object) => healthOf(object).status);
  const different = sample.flatMap((object, index) =>
    ours[index] === theirs[index] ? [] : [{ object, ours: ours[index], kstatus: theirs[index] }],
  );
  expect(different).toEqual([]);
  expect(new Set(theirs)).toEqual(new Set(["Current", "InProgress", "Failed", "Terminating"]));
});
