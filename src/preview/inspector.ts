import { PROVIDER_PROPERTY } from "../../providers/dynamic";
import { maskSecrets, unescapeReserved } from "../../providers/literal";
import type { Properties } from "../../providers/provider";
import type { AnyKind } from "../../stacks/contract/kind";
import { findKind } from "../../stacks/contract/kind-name";
import {
  belongsTo,
  isObjectComponent,
  isOfSeveral,
  sharedStackAssignment,
  stackOf,
} from "../../stacks/contract/shared-stack";
import type { HistoryEntry, StackReader } from "../automation/stack-reader";
import type { StackState } from "../automation/stack-state";
import { nameOf } from "../automation/urn";
import type { ResourceOutputs, StackUpdate } from "./answers";
import type { ClusterView } from "./cluster-view";
import { preview, type Selection } from "./preview";
import type { Report } from "./report";
import type { DiffRequest, ObjectRequest } from "./requests";

export interface InspectorOptions {
  kinds: readonly AnyKind[];
  reader: StackReader;
  cluster: ClusterView;
  signal?: AbortSignal;
  /** What limits every report. */
  notes: string[];
  /** Told of every object that is previewed. */
  observe?: (done: number, total: number) => void;
}

/** The stack of one object. */
export interface LocatedStack {
  kind: AnyKind;
  name: string;
  namespace: string | undefined;
  /** `namespace/name`, or `name`. */
  key: string;
  stack: string;
  /** Whose objects share the stack, if any do. */
  sharedBy: "namespace" | "namespaces" | undefined;
}

/** Looks at stacks for the command line and for the operator's server; it changes nothing. */
export class Inspector {
  readonly #options: InspectorOptions;

  constructor(options: InspectorOptions) {
    this.#options = options;
  }

  /** What an update would do to the stacks of the selected objects. */
  preview(selection: Selection, refresh: boolean): Promise<Report> {
    return preview({ ...this.#options, refresh }, selection);
  }

  /**
   * The objects in the cluster that a request names.
   *
   * @throws Error when the cluster cannot be asked, or there is no such kind or object
   */
  async selectLive({ kind: word, name, namespace }: Omit<DiffRequest, "refresh">): Promise<Selection> {
    const { cluster, kinds } = this.#options;
    const chosen = word === undefined ? kinds : [findKind(kinds, word)];
    const candidates = chosen.map(async (kind) => {
      const where = kind.scope === "Cluster" ? undefined : namespace;
      const objects = name === undefined ? await cluster.list(kind, where) : [await cluster.find(kind, name, where)];
      return objects.map((manifest) => {
        if (manifest === undefined) throw new Error(`there is no ${kind.kind} ${name}`);
        return { kind, manifest, removed: manifest.metadata.deletionTimestamp !== undefined };
      });
    });
    return { candidates: (await Promise.all(candidates)).flat(), problems: [], ignored: 0 };
  }

  async locate(request: ObjectRequest): Promise<LocatedStack> {
    const { cluster, kinds } = this.#options;
    const kind = findKind(kinds, request.kind);
    const { name } = request;
    const place = kind.scope === "Cluster" ? undefined : request.namespace;
    const key = place === undefined ? name : `${place}/${name}`;
    // Which of a namespace's stacks an object shares is recorded on the object.
    const object = kind.capabilities.sharedStacks && (await cluster.find(kind, name, place).catch(() => undefined));
    const stack = stackOf(kind, key, object);
    const shared = kind.capabilities.sharedStacks ? sharedStackAssignment(kind, place ?? "", stack) : undefined;
    const sharedBy = shared && (isOfSeveral(shared.partition) ? "namespaces" : "namespace");
    return { kind, name, namespace: place, key, stack, sharedBy };
  }

  /** The updates, newest first. @throws Error when there is no stack */
  async history(located: LocatedStack): Promise<StackUpdate[]> {
    const { reader, signal } = this.#options;
    return found(await reader.history(located.stack, signal), located).map(essenceOf);
  }

  /** What the object made. @throws Error when there is no stack */
  async outputs(located: LocatedStack): Promise<ResourceOutputs[]> {
    const { reader, signal } = this.#options;
    const state = found(await reader.state(located.stack, signal), located);
    const shared = (state.deployment.resources ?? []).some(({ type }) => isObjectComponent(type));
    return outputsOf(state).filter(({ name }) => !shared || belongsTo(located.key, name));
  }

  /** In the form that `pulumi stack import` takes. @throws Error when there is no stack */
  async state(located: LocatedStack): Promise<StackState> {
    const { reader, signal } = this.#options;
    return found(await reader.state(located.stack, signal), located);
  }
}

function found<T>(value: T | undefined, { kind, name, stack }: LocatedStack): T {
  if (value === undefined) throw new Error(`${kind.kind} ${name} has no stack (${stack})`);
  return value;
}

/** The CLI's entries also hold its own environment, which says nothing about an object. */
function essenceOf({ version, kind, startTime, endTime, result, resourceChanges, changes }: HistoryEntry): StackUpdate {
  return {
    ...(version !== undefined && { version }),
    kind,
    startTime,
    ...(endTime !== undefined && { endTime }),
    result,
    resourceChanges: resourceChanges ?? {},
    ...(changes && { changes }),
  };
}

/** What the custom resources in a state have become; secrets stay encrypted. */
function outputsOf({ deployment }: StackState): ResourceOutputs[] {
  return (deployment.resources ?? [])
    .filter(({ type }) => type.startsWith("pulumi-nodejs:dynamic"))
    .map(({ urn, type, id = "", outputs: { [PROVIDER_PROPERTY]: _, ...outputs } = {} }) => ({
      type: type.split(":").at(-1) ?? type,
      name: nameOf(urn),
      id,
      outputs: unescapeReserved(maskSecrets(outputs) as Properties),
    }));
}
