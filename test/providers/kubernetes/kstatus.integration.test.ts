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
const containers = fc.array(
  fc.record({
    name: fc.constantFrom("a", "b"),
    state: fc.constantFrom(
      { running: {} },
      { waiting: { reason: "CrashLoopBackOff" } },
      { waiting: { reason: "Other" } },
    ),
  }),
  { maxLength: 2 },
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
    fc.record({
      replicas: count,
      updateStrategy: fc.constantFrom(
        undefined,
        { type: "OnDelete" },
        { type: "RollingUpdate" },
        { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
        { type: "RollingUpdate", rollingUpdate: { partition: 1 } },
      ),
    }),
    statusOf(
      fc.record({
        replicas: count,
        readyReplicas: count,
        currentReplicas: count,
        updatedReplicas: count,
        currentRevision: fc.constantFrom("a", "b"),
        updateRevision: fc.constantFrom("a", "b"),
      }),
    ),
  ],
  "apps/v1/DaemonSet": [
    fc.constant({}),
    statusOf(
      counts(
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberReady",
      ),
    ),
  ],
  "v1/Pod": [
    fc.constant({}),
    statusOf(
      fc.record({
        phase: fc.constantFrom(undefined, "Pending", "Running", "Succeeded"),
        containerStatuses: containers,
      }),
      "PodScheduled",
    ),
  ],
  "batch/v1/Job": [
    fc.constant({}),
    statusOf(fc.record({ startTime: fc.constantFrom(undefined, "2026-01-01T00:00:00Z") }), "Complete", "Failed"),
  ],
  "v1/Service": [fc.record({ type: fc.constantFrom("ClusterIP", "ExternalName") }), statusOf(fc.constant({}))],
  "apiextensions.k8s.io/v1/CustomResourceDefinition": [
    fc.constant({}),
    statusOf(fc.constant({}), "NamesAccepted", "Established"),
  ],
  "example.com/v1/Thing": [fc.constant({}), statusOf(fc.constant({}))],
  "policy/v1/PodDisruptionBudget": [fc.constant({}), statusOf(fc.constant({}))],
  "v1/ConfigMap": [fc.constant({}), fc.constant({})],
  "rbac.authorization.k8s.io/v1/RoleBinding": [fc.constant({}), fc.constant({})],
};

const objects: fc.Arbitrary<LiveObject> = fc.constantFrom(...Object.keys(TYPES)).chain((type) => {
  const [spec, status] = TYPES[type] ?? [fc.constant({}), fc.constant({})];
  const split = type.lastIndexOf("/");
  return fc.record({
    apiVersion: fc.constant(type.slice(0, split)),
    kind: fc.constant(type.slice(split + 1)),
    metadata: fc.record({
      name: fc.constant("a"),
      namespace: fc.constant("default"),
      uid: fc.constant("u"),
      resourceVersion: fc.constant("1"),
      generation: fc.constant(2),
      deletionTimestamp: fc.oneof(
        { weight: 9, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.constant("2026-01-01T00:00:00Z") },
      ),
    }),
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
