import { createSecretKey } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { PlannedChange } from "../../src/automation/planned-changes";
import { previewObject } from "../../src/preview/preview-object";
import {
  type Candidate,
  liveCandidate,
  type PlanOptions,
  previewRemoval,
  previewUpdate,
} from "../../src/preview/preview-update";
import { IGNORE_FIELDS_ANNOTATION } from "../../stacks/contract/annotations";
import type { AnyKind } from "../../stacks/contract/kind";
import { MODE_ANNOTATION } from "../../stacks/contract/mode";
import { podSet } from "../../stacks/kinds/podset/kind";
import { applied, liveObject, marksOf } from "../objects";
import { stub } from "../stub";

const program = vi.fn<AnyKind["program"]>();
const kind: AnyKind = { ...podSet, program };
const type = { apiVersion: "batch.tutorial.kubebuilder.io/v1", kind: "PodSet" };
const manifest = { ...type, metadata: { name: "web", namespace: "default" }, spec: { replicas: 1 } };
const live = liveObject({ ...manifest, metadata: { ...manifest.metadata, uid: "uid-web", generation: 1 } });
const owner = { uid: "uid-web", description: "PodSet.batch.tutorial.kubebuilder.io/default/web" };
const leaving: PlannedChange = {
  ...({ urn: "u", type: "pulumi-nodejs:dynamic/example:Thing", name: "thing", operation: "delete" } as const),
  old: { inputs: {}, outputs: { owner } },
};

/** A caller whose cluster has this of the object's; of a list that cannot be read, `undefined`. */
function options(owned: LiveObject[] | undefined, proposes = false): PlanOptions {
  const cluster = {
    unreachable: undefined,
    look: async () => ({ outcome: "absent" as const }),
    owned: async () => owned,
    watched: async () => [],
    identity: async () => undefined,
    validate: async () => ({ type: "valid" as const }),
  };
  const result = { exists: true, changes: [leaving], failures: [] };
  const engine = {
    exportStack: async () => undefined,
    previewDestroy: async () => result,
    preview: async (_stack: string, run: () => unknown) => {
      await run();
      return result;
    },
  };
  const key = createSecretKey(Buffer.alloc(32));
  const stubs = { engine: stub<PlanOptions["engine"]>(engine), cluster: stub<PlanOptions["cluster"]>(cluster) };
  return stub<PlanOptions>({ ...stubs, refresh: false, ...(proposes && { proposeWith: async () => key }) });
}

const candidate = (removed: boolean): Candidate => ({ kind, manifest, removed });
const found = { outcome: "found", object: live } as const;

it("the preview of an update leaves to others what only the live object says is left to them, as the update does", async () => {
  const annotations = { [IGNORE_FIELDS_ANNOTATION]: "Pod:metadata.labels" };
  const object = { ...live, metadata: { ...live.metadata, annotations } };
  await previewUpdate(options([]), candidate(false), { outcome: "found", object });
  expect(program.mock.lastCall?.[1].owner).toEqual({ ...owner, ignoreFields: ["Pod:metadata.labels"] });
});

describe("a namespace whose mode cannot be understood", () => {
  it.each([false, true])("pauses its objects, which previews say, removed: %s", async (removed) => {
    const { cluster, ...others } = options([]);
    const metadata = { name: "default", annotations: { [MODE_ANNOTATION]: "Obsreve" } };
    const object = liveObject({ kind: "Namespace", metadata });
    const look = async () => ({ outcome: "found" as const, object });
    const view = stub<PlanOptions["cluster"]>({ ...cluster, look: look as never });
    const preview = removed ? previewRemoval : previewUpdate;
    const plan = await preview({ ...others, cluster: view }, candidate(removed), found);
    const note = expect.stringMatching(/^paused: annotation .* of the namespace default: "Obsreve" must be /);
    expect(plan).toMatchObject({ action: "paused", notes: [note] });
  });
});

it("the preview of an object that was listed neither reads it again nor sends it as a dry run, as the API server has taken it", async () => {
  const { cluster, ...others } = options([]);
  const asked = vi.fn(async () => ({ type: "unknown" as const, why: "" }));
  const view = stub<PlanOptions["cluster"]>({ ...cluster, get: asked as never, validate: asked });
  const finder = async () => ({ conflicts: [], overwritten: new Map(), unknown: new Map() });
  const { plan } = await previewObject({ ...others, cluster: view }, finder, liveCandidate(kind, live));
  expect(plan).toMatchObject({ action: "update", validatedBy: "server" });
  expect(asked).not.toHaveBeenCalled();
});

describe("the digests of a removal", () => {
  it("are told where all that the object has can be read", async () => {
    const plan = await previewRemoval(options([], true), candidate(true), found);
    expect(plan).toMatchObject({ action: "delete", digest: expect.stringMatching(/^sha256:/), unknown: [] });
    expect((await previewRemoval(options([]), candidate(true), found)).digest).toBeUndefined();
    expect((await previewRemoval(options(undefined, true), candidate(true), found)).digest).toBeUndefined();
  });

  it("are others where an update that was cut off has made more", async () => {
    const managedFields = [applied("kindstack", {})];
    const more = liveObject({ metadata: { ...marksOf(owner, { created: true }), name: "web-9", managedFields } });
    const digestOf = async (owned: LiveObject[]) =>
      (await previewRemoval(options(owned, true), candidate(true), found)).digest;
    expect(await digestOf([])).not.toBe(await digestOf([more]));
  });
});
