import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import type { HistoryEntry } from "../../src/automation/engine";
import { eventually } from "../../src/testing/eventually";
import { PAUSED_ANNOTATION, RECONCILE_ANNOTATION } from "../../stacks/contract/annotations";
import { type AnyKind, kindName, statusOf } from "../../stacks/contract/kind";
import { objectKey, stackName } from "../../stacks/contract/object";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { postgresWriter } from "../../stacks/kinds/postgres-writer/kind";
import { controlPlane } from "../control-plane";
import { removeUntilGone, untilReady } from "./conditions";
import { POD, uniqueName } from "./manifests";
import { apply, client, edit } from "./objects";
import { kindstack } from "./operator";
import { manifestOf, PULUMI_TIMEOUT_MS, uidsOf, usePlatformTeam } from "./platform-team";

/** A kind whose object is handed over. */
export interface HandedOver {
  kind: AnyKind;
  /** @param name that of the object */
  specOf(name: string): object;
  /** How many resources it has. */
  count: number;
}

/** Tests that an object of each kind goes from `pulumi up` to the operator and back, and nothing is deleted or created. */
export function describeHandOver(cases: readonly HandedOver[]): void {
  const team = usePlatformTeam();
  const { madeFor, write, rows } = team;

  const operations = async (kind: AnyKind) => {
    const labels = { kind: `${kind.plural}.${kind.group}` };
    const count = (operation: string) =>
      team.operator.metric("kindstack_resource_operations_total", { ...labels, operation });
    const [created, deleted, replaced] = await Promise.all(["create", "delete", "replace"].map(count));
    return { created, deleted, replaced };
  };

  const environment = { ...controlPlane().env, PULUMI_BACKEND_URL: `file://${team.operator.stateDirectory}` };
  const state = (...args: string[]) => kindstack(["state", ...args], environment);
  const historyOf = (kind: AnyKind, name: string) => {
    const text = kindstack(["history", kindName(kind), name, "--output", "json"], environment);
    return (JSON.parse(text) as HistoryEntry[]).map(({ kind, result }) => `${kind} ${result}`);
  };

  describe("the hand-over between pulumi up and the operator", () => {
    beforeAll(() => team.operator.start());
    afterAll(() => team.operator.stop());

    it.each(cases.map((one) => [one.kind.kind, one] as const))(
      "deletes and creates nothing: %s",
      {
        timeout: PULUMI_TIMEOUT_MS,
      },
      async (_name, { kind, specOf, count }) => {
        const name = uniqueName("handed");
        const manifest = manifestOf(kind, name, specOf(name));
        const stack = stackName(kind, objectKey(manifest.metadata));
        const rowBefore = kind === postgresWriter ? 1 : 0;
        await team.project.init(stack);
        team.project.configure(stack, { manifests: write(kind.singular, manifest) });
        const first = await team.project.up(stack);
        expect(first.exitCode, first.output).toBe(0);
        expect(first.changes).toEqual({ create: count });
        const made = uidsOf(await madeFor(kind, manifest));
        const instances = kind === memcached ? await untilInstances(name, 2) : [];
        const before = await operations(kind);

        // pulumi up → operator: the object is applied to the cluster.
        const { metadata } = await apply(manifest);
        await untilHandled(manifest);

        expect(await operations(kind)).toEqual(before);
        expect(uidsOf(await madeFor(kind, manifest))).toEqual(made);
        if (kind.owns.length > 0) expect(ownersOf(await madeFor(kind, manifest))).toEqual([metadata.uid]);
        expect(await rows()).toHaveLength(rowBefore);

        // operator → pulumi up: not without a word to the operator …
        const refused = await team.project.up(stack);
        expect(refused.exitCode).toBe(1);
        expect(refused.output).toContain(`${PAUSED_ANNOTATION}=true`);
        const kept = await team.project.destroy(stack);
        expect(kept.exitCode).toBe(1);
        expect(kept.output).toContain(`${PAUSED_ANNOTATION}=true`);
        expect(uidsOf(await madeFor(kind, manifest))).toEqual(made);
        expect(await operations(kind)).toEqual(before);
        // … but then, and the object can go.
        await edit(manifest, { metadata: { annotations: { [PAUSED_ANNOTATION]: "true" } } });
        const taken = await team.project.up(stack);
        expect(taken.exitCode, taken.output).toBe(0);
        expect(taken.changes).toEqual({ update: count });

        // And back to the operator, which is asked to look.
        await edit(manifest, {
          metadata: { annotations: { [PAUSED_ANNOTATION]: null, [RECONCILE_ANNOTATION]: "back" } },
        });
        await untilHandled(manifest, "back");

        expect(await operations(kind)).toEqual(before);
        expect(uidsOf(await madeFor(kind, manifest))).toEqual(made);
        if (kind.owns.length > 0) expect(ownersOf(await madeFor(kind, manifest))).toEqual([metadata.uid]);

        // To pulumi up for good: the object leaves the cluster, its resources stay.
        await edit(manifest, { metadata: { annotations: { [PAUSED_ANNOTATION]: "true" } } });
        expect((await team.project.up(stack)).changes).toEqual({ update: count });
        expect(historyOf(kind, name)).toEqual([
          "update succeeded", // by pulumi up
          "update succeeded",
          "update succeeded", // by pulumi up
          "destroy failed", // by pulumi destroy, which the operator's object refused
          "update failed", // by pulumi up, likewise
          "update succeeded",
          "update succeeded", // by pulumi up
        ]);
        expect(state("unlock", kindName(kind), name)).toBe(`${stack} is not locked\n`);
        expect(() => state("unlock", kindName(kind), "nosuch")).toThrow("there is no stack");
        await edit(manifest, { metadata: { finalizers: null } });
        await removeUntilGone(manifest);

        expect(uidsOf(await madeFor(kind, manifest))).toEqual(made);
        if (kind === memcached) expect(await untilInstances(name, 2)).toEqual(instances);
        expect(await rows()).toHaveLength(rowBefore);
        expect(await operations(kind)).toEqual(before);
        const destroyed = await team.project.destroy(stack);
        expect(destroyed.changes, destroyed.output).toEqual({ delete: count });
      },
    );
  });
}

const ownersOf = (objects: ReadonlyMap<string, LiveObject>) => [
  ...new Set([...objects.values()].map(({ metadata }) => metadata.labels?.[OWNER_UID_LABEL])),
];

/** Waits until an object is Ready, and the operator has answered this request for a reconcile. */
async function untilHandled(manifest: Manifest, request?: string): Promise<void> {
  await eventually(async () => {
    const object = await untilReady(manifest);
    expect(statusOf(object).lastHandledReconcile).toBe(request);
  });
}

/** The UIDs of a Memcached's Pods, which its Deployment makes, as soon as there are so many. */
function untilInstances(instance: string, count: number): Promise<(string | undefined)[]> {
  return eventually(async () => {
    const labelSelector = `app.kubernetes.io/instance=${instance}`;
    const { items } = await client.list(POD, { labelSelector });
    expect(items).toHaveLength(count);
    return items.map(({ metadata }) => metadata.uid).sort();
  });
}
