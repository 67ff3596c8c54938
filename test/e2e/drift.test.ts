import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { eventually } from "../../src/testing/eventually";
import {
  DELETION_POLICY_ANNOTATION,
  IGNORE_FIELDS_ANNOTATION,
  PAUSED_ANNOTATION,
  RECONCILE_ANNOTATION,
} from "../../stacks/contract/annotations";
import { statusOf } from "../../stacks/contract/kind";
import { useDatabase } from "../providers/postgres/database";
import {
  applyUntilReady,
  conditionOf,
  conditionTypes,
  removeUntilGone,
  untilCondition,
  untilGone,
  untilReady,
} from "./conditions";
import { History } from "./history";
import {
  deploymentOf,
  MEMCACHED,
  memcached,
  namespace,
  POD,
  podSet,
  postgresWriter,
  ROLE_BINDING,
  tenant,
  uniqueName,
} from "./manifests";
import { apply, client, create, edit, eventsAbout, get, remove } from "./objects";
import { kindstack, useOperator } from "./operator";

const database = useDatabase();
let table = "";
beforeAll(async () => {
  table = await database.createStudents();
});
// What no watch shows is not looked for: an update more would be counted where one is asked for.
const operator = useOperator({
  args: ["--concurrency", "8", "--drift-interval", "3600"],
  env: { PSQL_DBNAME: database.name },
});

/** A Memcached at rest, and what names its Deployment. */
async function settled(prefix: string): Promise<{ object: Manifest; deployment: Manifest }> {
  const object = memcached(uniqueName(prefix));
  await apply(object);
  await untilCondition(object, "Progressing", "False");
  await untilReady(object);
  return { object, deployment: deploymentOf(object) };
}

const annotate = (object: Manifest, annotations: Record<string, string | null>) =>
  edit(object, { metadata: { annotations } });
const updates = () => operator.metric("kindstack_updates_total");
const repairs = () => operator.metric("kindstack_drift_repairs_total");
const replicasOf = async (deployment: Manifest) => ((await get(deployment)).spec as { replicas: number }).replicas;
const withImage = (image: string) => ({ spec: { template: { spec: { containers: [{ name: "memcached", image }] } } } });
const marksOf = ({ metadata: { labels = {}, annotations = {}, ownerReferences = [] } }: LiveObject) => [
  ...[...Object.keys(labels), ...Object.keys(annotations)].filter((name) => name.startsWith("kindstack.dev/")),
  ...ownerReferences.map(({ name }) => name),
];

/** Waits until the operator has looked at something again and does nothing any more. */
async function untilLookedAt(change: () => Promise<unknown>): Promise<void> {
  const before = await operator.metric("controller_runtime_reconcile_total");
  await change();
  await eventually(async () => {
    expect(await operator.metric("controller_runtime_reconcile_total")).toBeGreaterThan(before);
    expect(await operator.metric("controller_runtime_active_workers")).toBe(0);
  });
}

describe("a Deployment that a user changed by hand", () => {
  it("is repaired: its size, its image, a label", async () => {
    const { object, deployment } = await settled("edited");
    const { uid } = (await get(deployment)).metadata;
    await edit(deployment, { spec: { replicas: 5 } });
    await eventually(async () => {
      const text = `Deployment default/${object.metadata.name}: spec.replicas 5 → 1 (someone)`;
      const note = expect.stringContaining(text);
      expect(await eventsAbout(await get(object))).toContainEqual(
        expect.objectContaining({ reason: "Repaired", note }),
      );
    });
    await eventually(async () => expect(await replicasOf(deployment)).toBe(1));
    const history = (...format: string[]) => {
      const words = ["history", "memcached", object.metadata.name ?? "", "-n", "default", ...format];
      return kindstack(words, { PULUMI_BACKEND_URL: `file://${operator.stateDirectory}` });
    };
    const resource = `deployment/${object.metadata.name}`;
    expect(history()).toContain(`update Deployment ${resource}: spec.replicas 5 → 1 (someone)`);
    expect(JSON.parse(history("-o", "json"))[0].changes).toEqual([
      {
        operation: "update",
        type: "Deployment",
        name: resource,
        drift: [{ field: "spec.replicas", live: 5, wanted: 1, by: "someone" }],
      },
    ]);

    await edit(deployment, withImage("evil:1"));
    await eventually(async () => expect(await get(deployment)).toMatchObject(withImage("memcached:1.4.36-alpine")));

    await edit(deployment, { metadata: { labels: { [OWNER_UID_LABEL]: null } } });
    await eventually(async () => {
      expect((await get(deployment)).metadata.labels).toHaveProperty([OWNER_UID_LABEL]);
    });
    expect((await get(deployment)).metadata.uid).toBe(uid);
    await untilReady(object);
  });

  it("is left alone where nothing was changed that Kindstack sets", async () => {
    const { object, deployment } = await settled("extended");
    const before = await updates();
    const theirs = {
      metadata: { annotations: { "autoscaling.alpha.kubernetes.io/conditions": "[]" }, labels: { team: "blue" } },
      spec: {
        template: { metadata: { annotations: { "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z" } } },
      },
    };
    await untilLookedAt(() => edit(deployment, theirs));
    await untilCondition(object, "Progressing", "False"); // what was restarted has started
    expect(await updates()).toBe(before);

    await edit(object, { spec: { size: 2 } });
    await eventually(async () => expect(await replicasOf(deployment)).toBe(2));
    expect(await get(deployment)).toMatchObject(theirs);
  });
});

it("a conflict over a field is seen, told and given way to, and is over when the other one stops", async () => {
  const { object, deployment } = await settled("conflicting");
  let overwriting = true;
  const conflict = (async () => {
    while (overwriting) {
      if ((await replicasOf(deployment)) === 1) await edit(deployment, { spec: { replicas: 2 } });
      await delay(20);
    }
  })();
  try {
    const conflicting = await untilCondition(object, "FieldConflict", "True", "RepairsReverted");
    const text = `Deployment default/${deployment.metadata.name}: spec.replicas is 2 in place of 1: set by someone`;
    expect(conditionOf(conflicting, "FieldConflict").message).toContain(text);
    await eventually(async () => {
      const event = expect.objectContaining({ type: "Warning", reason: "FieldConflict", note: text });
      expect(await eventsAbout(conflicting)).toContainEqual(event);
    });
    const told = new History(MEMCACHED, await get(object));
    await operator.restart(); // which knows nothing of earlier repairs
    await eventually(async () => expect(await repairs()).toBeGreaterThan(0));
    await told.stop();
    const said = [...told.versions, await get(object)].map((version) => conditionOf(version, "FieldConflict").status);
    expect(new Set(said)).toEqual(new Set(["True"]));
  } finally {
    overwriting = false;
    await conflict;
  }
  await eventually(async () => expect(await replicasOf(deployment)).toBe(1));
  // Whoever ended it need not wait until the operator is sure.
  await annotate(object, { [RECONCILE_ANNOTATION]: "the other one has stopped" });
  await untilCondition(object, "FieldConflict", "False", "Settled");
  await untilReady(object);
});

describe.concurrent("a conflict", () => {
  it("with an autoscaler is told at its pace, and ends when the field is left to it, as the page says", async () => {
    const { object, deployment } = await settled("autoscaled");
    const name = object.metadata.name ?? "";
    const autoscaler: Manifest = {
      apiVersion: "autoscaling/v2",
      kind: "HorizontalPodAutoscaler",
      metadata: { name, namespace: "default" },
      spec: { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name }, minReplicas: 2, maxReplicas: 3 },
    };
    await apply(autoscaler);
    const told = await untilCondition(object, "FieldConflict", "True", "RepairsReverted");
    const text = `Deployment default/${name}: spec.replicas is 2 in place of 1: set by kube-controller-manager`;
    expect(conditionOf(told, "FieldConflict").message).toContain(text);
    expect(conditionOf(told, "Ready")).toMatchObject({ status: "False", reason: "FieldConflict" });

    await annotate(object, { [IGNORE_FIELDS_ANNOTATION]: `Deployment/${name}:spec.replicas` });
    await untilCondition(object, "FieldConflict", "False", "Settled");
    await eventually(async () => expect(await replicasOf(deployment)).toBe(2));
    await untilReady(object);
    await edit(object, { spec: { containerPort: 11213 } });
    await untilReady(object);
    expect(await replicasOf(deployment)).toBe(2);
    await remove(autoscaler);
  });

  it("with admission is told at once, names both values, and is over when the policy is gone", async () => {
    const object = memcached(uniqueName("mutated"));
    const policy = await mutate(object.metadata.name ?? "", "Object{spec: Object.spec{replicas: 2}}");
    const told = await (async () => {
      await apply(object);
      return untilCondition(object, "FieldConflict", "True", "RepairsReverted");
    })().finally(() => policy.remove());
    const text = `Deployment default/${object.metadata.name}: spec.replicas is 2 in place of 1: admission changed it`;
    expect(conditionOf(told, "FieldConflict").message).toContain(text);
    expect(conditionOf(told, "Synced")).toMatchObject({ status: "False", reason: "FieldConflict" });
    await eventually(async () => {
      await untilCondition(object, "FieldConflict", "False", "Settled");
      expect(await replicasOf(deploymentOf(object))).toBe(1);
    });
    await untilReady(object);
  });
});

/** Makes the API server change Deployments of this name as they are written. */
async function mutate(name: string, expression: string): Promise<{ remove(): Promise<void> }> {
  const group = { apiVersion: "admissionregistration.k8s.io/v1" };
  const policy: Manifest = {
    ...group,
    kind: "MutatingAdmissionPolicy",
    metadata: { name },
    spec: {
      matchConstraints: {
        resourceRules: [
          { apiGroups: ["apps"], apiVersions: ["v1"], operations: ["CREATE", "UPDATE"], resources: ["deployments"] },
        ],
      },
      matchConditions: [{ name: "name", expression: `object.metadata.name == "${name}"` }],
      mutations: [{ patchType: "ApplyConfiguration", applyConfiguration: { expression } }],
      reinvocationPolicy: "Never",
    },
  };
  const binding: Manifest = {
    ...group,
    kind: "MutatingAdmissionPolicyBinding",
    metadata: { name },
    spec: { policyName: name },
  };
  await create(policy);
  await create(binding);
  // A policy holds some time after it is there.
  await eventually(async () => {
    const probe = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name, namespace: "default" } };
    const labels = { app: "probe" };
    const spec = {
      replicas: 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "a", image: "a" }] } },
    };
    const { object } = await client.apply({ ...probe, spec }, { dryRun: true });
    expect(object.spec).toMatchObject({ replicas: 2 });
  });
  return {
    remove: async () => {
      await remove(binding);
      await remove(policy);
    },
  };
}

describe("a field that is left to others", () => {
  it("keeps its live value, whoever has it, while the rest is kept as it should be", async () => {
    const { object, deployment } = await settled("scaled");
    const name = deployment.metadata.name ?? "";
    await annotate(object, { [IGNORE_FIELDS_ANNOTATION]: `Deployment/${name}:spec.replicas` });
    await eventually(async () => {
      const { stack } = statusOf(await get(object));
      expect(stack?.ignoreFields).toEqual([`Deployment/${name}:spec.replicas`]);
    });
    expect(await replicasOf(deployment)).toBe(1);

    const scale = (replicas: number) =>
      client.json("PATCH", `/apis/apps/v1/namespaces/default/deployments/${name}/scale`, {
        query: { fieldManager: "autoscaler" },
        contentType: "application/merge-patch+json",
        body: { spec: { replicas } },
      });
    for (const replicas of [2, 3, 2, 3]) {
      const before = await updates();
      await untilLookedAt(() => scale(replicas));
      expect(await updates()).toBe(before);
    }
    await edit(deployment, withImage("evil:1"));
    await eventually(async () => expect(await get(deployment)).toMatchObject(withImage("memcached:1.4.36-alpine")));
    expect(await replicasOf(deployment)).toBe(3);
    await edit(object, { spec: { containerPort: 11213 } });
    await untilReady(object);
    expect(await replicasOf(deployment)).toBe(3);
    expect(conditionTypes(await get(object))).not.toContain("FieldConflict");
  });

  it("is told when nothing has its name, and is Kindstack's again when the annotation goes", async () => {
    const { object, deployment } = await settled("misspelt");
    const name = deployment.metadata.name ?? "";
    await annotate(object, { [IGNORE_FIELDS_ANNOTATION]: `Deployment/${name}x:spec.replicas` });
    const note = expect.stringMatching(`by Deployment/${name}x:spec.replicas; the object made Deployment/${name}$`);
    await eventually(async () => {
      const event = expect.objectContaining({ type: "Warning", reason: "InvalidAnnotation", note });
      expect(await eventsAbout(await get(object))).toContainEqual(event);
    });
    await annotate(object, { [IGNORE_FIELDS_ANNOTATION]: `Deployment/${name}:spec.replicas` });
    await eventually(async () =>
      expect(statusOf(await get(object)).stack?.ignoreFields).toContain(`Deployment/${name}:spec.replicas`),
    );
    await untilLookedAt(() => edit(deployment, { spec: { replicas: 3 } }));
    expect(await replicasOf(deployment)).toBe(3);
    await annotate(object, { [IGNORE_FIELDS_ANNOTATION]: null });
    await eventually(async () => expect(await replicasOf(deployment)).toBe(1));
    await untilReady(object);
  });
});

describe("a paused object", () => {
  it("is not repaired, not updated and says so, until it continues", async () => {
    const { object, deployment } = await settled("paused");
    await annotate(object, { [PAUSED_ANNOTATION]: "true" });
    await untilCondition(object, "Paused", "True", "Paused");
    const before = await updates();
    await untilLookedAt(() => edit(deployment, { spec: { replicas: 3 } }));
    await untilLookedAt(() => edit(object, { spec: { containerPort: 11212 } }));
    expect(await updates()).toBe(before);
    expect(await replicasOf(deployment)).toBe(3);
    const waiting = await eventually(async () => {
      const held = await get(object);
      expect(conditionOf(held, "Ready")).toMatchObject({ status: "False", reason: "Paused" });
      return conditionOf(held, "Paused").message;
    });
    expect(waiting).toContain(
      `The spec has changed; Deployment default/${deployment.metadata.name} is not as it was applied`,
    );

    await annotate(object, { [PAUSED_ANNOTATION]: null });
    await untilReady(object);
    expect(await replicasOf(deployment)).toBe(1);
    expect(await get(deployment)).toMatchObject({
      spec: { template: { spec: { containers: [{ ports: [{ containerPort: 11212 }] }] } } },
    });
  });
});

it("an annotation that cannot be understood holds an object, its deletion too, until it is corrected", async () => {
  const { object, deployment } = await settled("misread");
  await annotate(object, { [DELETION_POLICY_ANNOTATION]: "Retain" });
  await untilCondition(object, "Paused", "True", "InvalidAnnotation");
  await untilLookedAt(() => remove(object));
  expect(conditionOf(await get(object), "Paused").message).toContain('"Retain" must be Orphan or Delete');
  expect((await get(deployment)).metadata.deletionTimestamp).toBeUndefined();
  await annotate(object, { [DELETION_POLICY_ANNOTATION]: " orphan" });
  await untilGone(object);
  expect(marksOf(await get(deployment))).toEqual([]);
  await remove(deployment);
});

it("an object that is asked to be reconciled is compared with the real world once for each value", async () => {
  const writer = postgresWriter(uniqueName("asked"), { table });
  await applyUntilReady(writer);
  const key = `default/${writer.metadata.name}`;
  for (const value of ["1", "2"]) {
    const before = await updates();
    await database.query(`UPDATE ${table} SET age = 99 WHERE id = $1`, [key]);
    await annotate(writer, { [RECONCILE_ANNOTATION]: value });
    await eventually(async () => expect((await get(writer)).status).toMatchObject({ lastHandledReconcile: value }));
    expect(await database.query(`SELECT age FROM ${table} WHERE id = $1`, [key])).toEqual([{ age: 23 }]);
    expect(await updates()).toBe(before + 1);
  }
  const before = await updates();
  await untilLookedAt(() => annotate(writer, { [RECONCILE_ANNOTATION]: null }));
  expect(await updates()).toBe(before);
});

describe("an object whose deletion policy is Orphan leaves what it made, as unmanaged:", () => {
  async function orphan(object: Manifest): Promise<void> {
    const live = await annotate(object, { [DELETION_POLICY_ANNOTATION]: "Orphan" });
    await removeUntilGone(object);
    await eventually(() => expect(operator.stateFiles(object.metadata.name ?? "")).toEqual([]));
    await eventually(async () => {
      expect(await eventsAbout(live)).toContainEqual(expect.objectContaining({ reason: "Orphaned" }));
    });
  }

  it("a Deployment, which another Memcached of that name takes over, and keeps", async () => {
    const { object, deployment } = await settled("orphan");
    const { uid } = (await get(deployment)).metadata;
    await orphan(object);
    const left = await get(deployment);
    expect(left.metadata).toMatchObject({ uid });
    expect(left.metadata.deletionTimestamp).toBeUndefined();
    expect(marksOf(left)).toEqual([]);
    expect(await replicasOf(deployment)).toBe(1);

    await apply({ ...object, spec: { size: 2 } });
    await untilReady(object);
    expect(await get(deployment)).toMatchObject({ metadata: { uid }, spec: { replicas: 2 } });
    await remove(deployment);
  });

  it("Pods", async () => {
    const object = podSet(uniqueName("orphan"), 2);
    await applyUntilReady(object);
    await orphan(object);
    const { items } = await client.list(POD, {
      namespace: "default",
      labelSelector: `app=${object.metadata.name},version=v0.1`,
    });
    expect(items).toHaveLength(2);
    expect(items.flatMap(marksOf)).toEqual([]);
    expect(items.filter(({ metadata }) => metadata.deletionTimestamp)).toEqual([]);
    await Promise.all(items.map(remove));
  });

  it("namespaces and their bindings", async () => {
    const object = tenant(uniqueName("orphan"));
    await applyUntilReady(object);
    await orphan(object);
    const left = await get(namespace(object.metadata.name ?? ""));
    expect(left.metadata.deletionTimestamp).toBeUndefined();
    expect(left.metadata.annotations).toMatchObject({ adminEmail: "admin@example.com" });
    const { items } = await client.list(ROLE_BINDING, { namespace: left.metadata.name });
    expect(items).toHaveLength(2);
    expect([left, ...items].flatMap(marksOf)).toEqual([]);
    await remove(left);
  });

  it("a row, of which nothing says whose it was", async () => {
    const object = postgresWriter(uniqueName("orphan"), { table });
    await applyUntilReady(object);
    await orphan(object);
    const key = `default/${object.metadata.name}`;
    expect(await database.query(`SELECT age FROM ${table} WHERE id = $1`, [key])).toEqual([{ age: 23 }]);
    expect(await database.query("SELECT * FROM kindstack_ownership.records WHERE key = $1", [key])).toEqual([]);
  });
});
