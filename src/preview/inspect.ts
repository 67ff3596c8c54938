import type { KeyObject } from "node:crypto";
import { withoutInternal } from "../../providers/dynamic";
import { errorMessageOf } from "../../providers/errors";
import { known } from "../../providers/kubernetes/types";
import { maskSecrets, unescapeReserved } from "../../providers/literal";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { findKind } from "../../stacks/contract/kind-name";
import { objectKey, stackName } from "../../stacks/contract/object";
import type { StackEngine } from "../automation/engine";
import { neededPlugins, withPluginFolders } from "../automation/needed-plugins";
import type { PluginHost } from "../automation/plugin-host";
import type { StackState } from "../automation/stack-state";
import { DYNAMIC, isScaffolding, nameOf, stackOf, typeWord } from "../automation/urn";
import { resourcesOf } from "../fleet/artefact";
import { Refusal } from "../http/refusal";
import {
  type Answers,
  MAX_REQUEST_RESOURCES,
  type NeededRight,
  type ObjectRequest,
  type RequestPath,
  type Requests,
  rightForPlugins,
  rightsForDiff,
  rightsForFleet,
  rightsForPreview,
  rightsForStack,
  rightsToRead,
} from "./api";
import type { ClusterView } from "./cluster-view";
import { lookForKinds, selectFleet, selectFleetDeclared } from "./fleet";
import { listServed, type PreviewOptions, preview, type Selection, selectCandidates, withRemoved } from "./preview";
import { liveCandidate } from "./preview-update";

export interface Inspection extends Pick<PreviewOptions, "signal" | "onProgress" | "isBusy" | "configuredMode"> {
  kinds: readonly AnyKind[];
  /** Called once the request is known to be allowed. */
  open(): Promise<Pick<PreviewOptions, "cluster" | "notes"> & { engine: StackEngine }>;
  /** Refuses those who may not ask; without it, all may. @throws Refusal */
  authorize?(rights: readonly NeededRight[]): Promise<void>;
  /** The key of the digests of plans; undefined where the operator's is not known. */
  planKey?: (() => Promise<KeyObject>) | undefined;
  /** What runs the plugins of the operator's updates. */
  plugins?: Pick<PluginHost, "list"> | undefined;
  /** More objects are refused. */
  maxObjects?: number;
}

/**
 * Looks at stacks and objects, and changes nothing.
 *
 * @throws Refusal for a request that is not allowed; Error when something cannot be read, or there is no such object or stack
 */
export function inspectStacks<P extends RequestPath>(
  inspection: Inspection,
  path: P,
  request: Requests[P],
): Promise<Answers[P]> {
  return HANDLERS[path](inspection, request);
}

const NO_KEY = "digests of plans need the passphrase of the operator's state; with --server, the operator gives them";

const HANDLERS: { [P in RequestPath]: (inspection: Inspection, request: Requests[P]) => Promise<Answers[P]> } = {
  async "/v1/preview"(inspection, { namespace, manifests, before, prune, refresh, propose }) {
    const { kinds } = inspection;
    const proposing = proposingWith(inspection, propose);
    let selection = selectCandidates(kinds, namespace, manifests, before);
    limitObjects(inspection, selection);
    await inspection.authorize?.([
      ...(await rightsForPreview(selection, kinds)),
      ...(prune ? rightsForDiff(kinds, prune) : []),
    ]);
    const sources = await inspection.open();
    if (prune !== undefined) {
      selection = withRemoved(selection, await selected(sources.cluster, kinds, prune));
      limitObjects(inspection, selection);
    }
    return preview({ ...inspection, ...sources, refresh, ...proposing }, selection);
  },

  async "/v1/diff"(inspection, request) {
    const { refresh } = request;
    const proposing = proposingWith(inspection, request.propose);
    const kinds = request.kind === undefined ? inspection.kinds : [kindNamed(inspection, request.kind)];
    await inspection.authorize?.(rightsForDiff(kinds, request));
    const sources = await inspection.open();
    const { cluster } = sources;
    const selection =
      request.kind === undefined
        ? await selectFleet(cluster, kinds, request.namespace)
        : await selectLive(cluster, kinds, request);
    limitObjects(inspection, selection);
    await inspection.authorize?.(await rightsToRead(selection, inspection.kinds));
    return preview({ ...inspection, ...sources, refresh, ...proposing }, selection);
  },

  async "/v1/fleet"(inspection, request) {
    const { kinds } = inspection;
    const { refresh, notFetched } = request;
    const proposing = proposingWith(inspection, request.propose);
    const selection = selectFleetDeclared(kinds, request);
    limitObjects(inspection, selection);
    limitResources(inspection, request);
    await inspection.authorize?.(rightsForFleet(selection, notFetched));
    const sources = await inspection.open();
    const { notes, unchecked } = await lookForKinds(sources.cluster, notFetched);
    selection.notes = [...(selection.notes ?? []), ...notes];
    selection.unchecked = [...(selection.unchecked ?? []), ...unchecked];
    return preview({ ...inspection, ...sources, refresh, ...proposing }, selection);
  },

  /** The updates, newest first. */
  async "/v1/history"(inspection, request) {
    const { engine, stack, found } = await openStack(inspection, request, "previews");
    return found(await engine.history(stack, inspection.signal)).map((entry) => ({
      ...entry,
      startTime: entry.startTime.toISOString(),
      endTime: entry.endTime.toISOString(),
    }));
  },

  /** What the object made. */
  async "/v1/outputs"(inspection, request) {
    const { engine, stack, found } = await openStack(inspection, request, "previews");
    return outputsOf(found(await engine.exportStack(stack, inspection.signal)));
  },

  /** In the form that `pulumi stack import` takes. */
  async "/v1/state"(inspection, request) {
    const { engine, stack, found } = await openStack(inspection, request, "states");
    return found(await engine.exportStack(stack, inspection.signal));
  },

  async "/v1/plugins"({ kinds, authorize, plugins }) {
    await authorize?.([rightForPlugins]);
    return { kinds: pluginsOf(kinds), ...(plugins && { processes: await plugins.list() }) };
  },
};

/** @throws Refusal where the digests of plans are asked for, and cannot be the operator's */
function proposingWith({ planKey }: Inspection, propose = false): Pick<PreviewOptions, "proposeWith"> {
  if (!propose) return {};
  if (planKey === undefined) throw new Refusal(422, "NoKey", NO_KEY);
  return { proposeWith: planKey };
}

/** The plugins that kinds need, and where this process finds them. */
export function pluginsOf(kinds: readonly AnyKind[]): Answers["/v1/plugins"]["kinds"] {
  const environment = withPluginFolders(kinds, process.env);
  return kinds.map((kind) => ({ kind: kindName(kind), plugins: neededPlugins(kind, environment) }));
}

function limitObjects({ maxObjects = Number.POSITIVE_INFINITY }: Inspection, { candidates }: Selection): void {
  if (candidates.length <= maxObjects) return;
  const message = `a request is for ${maxObjects} objects at most, not ${candidates.length}`;
  throw new Refusal(413, "RequestEntityTooLarge", message);
}

function limitResources({ maxObjects }: Inspection, { objects }: Requests["/v1/fleet"]): void {
  const declared = objects.reduce((sum, object) => sum + resourcesOf(object), 0);
  if (maxObjects === undefined || declared <= MAX_REQUEST_RESOURCES) return;
  const message = `a request is for ${MAX_REQUEST_RESOURCES} resources at most, not ${declared}`;
  throw new Refusal(413, "RequestEntityTooLarge", message);
}

function kindNamed({ kinds }: Inspection, word: string): AnyKind {
  try {
    return findKind(kinds, word);
  } catch (error) {
    throw new Refusal(400, "BadRequest", errorMessageOf(error));
  }
}

/** The objects in the cluster that a request names. */
async function selectLive(
  cluster: ClusterView,
  kinds: readonly AnyKind[],
  { name, namespace }: Requests["/v1/diff"],
): Promise<Selection> {
  const objectsOf = async (kind: AnyKind) => {
    if (name !== undefined) return [await known(cluster.get(kind, name, namespace))];
    return cluster.list(kind, namespace);
  };
  const candidates = kinds.map(async (kind) =>
    (await objectsOf(kind)).map((live) => {
      if (live === undefined) throw new Error(`there is no ${kind.kind} ${name}`);
      return liveCandidate(kind, live);
    }),
  );
  return { candidates: (await Promise.all(candidates)).flat() };
}

/** The objects of the cluster that a selector finds. */
async function selected(
  cluster: ClusterView,
  kinds: readonly AnyKind[],
  { selector, namespace }: NonNullable<Requests["/v1/preview"]["prune"]>,
) {
  const lists = kinds.map(async (kind) => {
    const found = await listServed(cluster, kind, namespace, selector);
    return found.map((manifest) => ({ kind, manifest }));
  });
  return (await Promise.all(lists)).flat();
}

async function openStack(inspection: Inspection, request: ObjectRequest, resource: "previews" | "states") {
  const kind = kindNamed(inspection, request.kind);
  const { name } = request;
  const namespace = kind.scope === "Cluster" ? undefined : request.namespace;
  await inspection.authorize?.(rightsForStack(resource, kind, namespace, name)); // before anything is told of the object
  const { engine } = await inspection.open();
  const stack = stackName(kind, objectKey({ name, ...(namespace !== undefined && { namespace }) }));
  return {
    engine,
    stack,
    found<T>(value: T | undefined): T {
      if (value === undefined) throw new Error(`${kind.kind} ${name} has no stack (${stack})`);
      return value;
    },
  };
}

/** What Kindstack's own providers record for themselves. */
const BOOKKEEPING = ["owner", "fields", "drifted", "drift", "resourceVersion", "location", "incarnation"];

/** The outputs of a stack, and of its resources that are not components; secrets are hidden. */
function outputsOf({ deployment }: StackState): Answers["/v1/outputs"] {
  return (deployment.resources ?? []).flatMap(({ urn, type, id, outputs = {} }) => {
    const isRoot = type === "pulumi:pulumi:Stack" && Object.keys(outputs).length > 0;
    if (!isRoot && (id === undefined || isScaffolding(urn))) return [];
    const isOwn = [`${DYNAMIC}kubernetes:`, `${DYNAMIC}postgres:`].some((prefix) => type.startsWith(prefix));
    const told = Object.entries(outputs).filter(([name]) => !(isOwn && BOOKKEEPING.includes(name)));
    const shown = unescapeReserved(maskSecrets(withoutInternal(Object.fromEntries(told))));
    return [{ type: typeWord(type), name: isRoot ? stackOf(urn) : nameOf(urn), id: id ?? "", outputs: shown }];
  });
}
