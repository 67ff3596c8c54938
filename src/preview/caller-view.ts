import { errorMessageOf } from "../../providers/errors";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { type Settings, settingsOf } from "../../stacks/contract/annotations";
import type { AnyKind } from "../../stacks/contract/kind";
import type { Mode } from "../../stacks/contract/mode";
import { objectId } from "../../stacks/contract/object";
import type { View } from "../plan/plan";
import { deletedWith, deletesOthers } from "../plan/untracked";
import type { ClusterView } from "./cluster-view";

export interface CallerView extends View {
  /** What could not be told, in words. */
  unknown(): string[];
}

/** What is known of an object before its plan. */
export interface KnownObject {
  kind: AnyKind;
  key: string;
  live: LiveObject | undefined;
  /** Its live objects; `undefined` where they cannot be read, or were not. */
  owned: readonly LiveObject[] | undefined;
  /** What the state has of them. */
  recorded: readonly LiveObject[];
}

/** The view of who asks for a preview, with rights that may be limited: what they cannot be told is noted, and the state tells of it. */
export function callerView(cluster: ClusterView, { kind, key, live, owned, recorded }: KnownObject): CallerView {
  const unknown = new Map<keyof View, string>();
  const isSeen = cluster.unreachable === undefined; // else, the object is unknown for the same reason
  return {
    async look(manifest) {
      const lookup = await cluster.look(manifest);
      if (lookup.outcome !== "unknown") return lookup;
      const id = objectId(manifest);
      const object = owned?.find((one) => objectId(one) === id);
      return object === undefined ? lookup : { outcome: "found", object };
    },
    cluster: () =>
      cluster.identity().catch((error: unknown) => {
        unknown.set("cluster", `which cluster it is could not be looked up: ${errorMessageOf(error)}`);
        return undefined;
      }),
    async owned() {
      if (owned === undefined && live !== undefined) unknown.set("owned", "its resources could not be listed");
      return [...(owned ?? recorded)];
    },
    async watched() {
      const watched = await cluster.watched(kind, key);
      if (watched === undefined && isSeen) unknown.set("watched", "what it depends on could not be listed");
      return watched ?? [];
    },
    marked: async () => owned ?? [],
    async deletedWith() {
      return deletesOthers(kind) ? deletedWith(kind, key, await this.watched()) : [];
    },
    unknown: () => ["cluster", "owned", "watched"].flatMap((name) => unknown.get(name as keyof View) ?? []),
  };
}

/** The mode that the operator is configured with for a kind; known to the operator alone. */
export type ConfiguredMode = (kind: AnyKind) => Mode | undefined;

/** What users ask for of an object, as far as the caller can see: a namespace that the caller may not get sets no mode. */
export async function readSettings(
  cluster: Pick<ClusterView, "look">,
  configuredMode: ConfiguredMode | undefined,
  kind: AnyKind,
  object: Pick<Manifest, "metadata">,
): Promise<Settings> {
  const { namespace: name } = object.metadata;
  const isIn = kind.scope === "Namespaced" && name !== undefined;
  const lookup = isIn && (await cluster.look({ apiVersion: "v1", kind: "Namespace", metadata: { name } }));
  return settingsOf(object, lookup && lookup.outcome === "found" ? lookup.object : undefined, configuredMode?.(kind));
}

/** What settings make of the changes that a preview shows. */
export function settingsNotes({ mode, paused, problem }: Settings): string[] {
  const why = problem ?? "no update until the annotation kindstack.dev/paused is removed";
  return [...(paused ? [`paused: ${why}`] : []), ...MODE_NOTES[mode]];
}

const MODE_NOTES: Readonly<Record<Mode, readonly string[]>> = {
  Apply: [],
  ProposeDestructive: ["mode ProposeDestructive: what deletes or replaces something waits for an approval"],
  Propose: ["mode Propose: every change waits for an approval"],
  Observe: ["mode Observe: nothing is written; the changes are those of another mode"],
};
