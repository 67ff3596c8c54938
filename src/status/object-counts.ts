import type { LiveObject } from "../../providers/kubernetes/client";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import { READINESS_STATES, type ReadinessState, readinessOf } from "../../stacks/contract/readiness";

export interface KindCounts {
  kind: string;
  objects: number;
  synced: number;
  ready: number;
  states: Record<ReadinessState, number>;
  /** Those that are not Ready, the most frequent reason first. */
  notReady: {
    reason: string;
    objects: number;
    /** Keys of some of them. */
    examples: string[];
  }[];
}

const EXAMPLES = 3;

export function countObjects(kind: AnyKind, objects: readonly LiveObject[]): KindCounts {
  const states = Object.fromEntries(READINESS_STATES.map((state) => [state, 0])) as Record<ReadinessState, number>;
  const reasons = new Map<string, KindCounts["notReady"][number]>();
  let [isSynced, isReady] = [0, 0];
  for (const object of objects) {
    const { synced, ready, reason, states: present } = readinessOf(object);
    if (synced === "True") isSynced++;
    for (const state of present) states[state]++;
    if (ready === "True") {
      isReady++;
      continue;
    }
    const count = reasons.get(reason) ?? { reason, objects: 0, examples: [] };
    count.objects++;
    if (count.examples.length < EXAMPLES) count.examples.push(objectKey(object.metadata));
    reasons.set(reason, count);
  }
  const notReady = [...reasons.values()].sort((a, b) => b.objects - a.objects || (a.reason < b.reason ? -1 : 1));
  return { kind: kindName(kind), objects: objects.length, synced: isSynced, ready: isReady, states, notReady };
}
