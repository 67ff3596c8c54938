import type { LiveObject } from "../../providers/kubernetes/client";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import { READINESS_STATES, type ReadinessState, readinessOf } from "../../stacks/contract/readiness";

export type KindCounts = ReturnType<typeof countObjects>;

const EXAMPLES = 3;

export function countObjects(kind: AnyKind, objects: readonly LiveObject[]) {
  const all = objects.map((object) => ({ key: objectKey(object.metadata), ...readinessOf(object) }));
  const inState = (state: ReadinessState) => all.filter(({ states }) => states.includes(state)).length;
  const notReady = all.filter(({ ready }) => ready !== "True");
  return {
    kind: kindName(kind),
    objects: all.length,
    synced: all.filter(({ synced }) => synced === "True").length,
    ready: all.length - notReady.length,
    states: Object.fromEntries(READINESS_STATES.map((state) => [state, inState(state)])) as Record<
      ReadinessState,
      number
    >,
    /** The most frequent reason first, with the keys of some objects. */
    notReady: [...Map.groupBy(notReady, ({ reason }) => reason)]
      .map(([reason, found]) => {
        return { reason, objects: found.length, examples: found.slice(0, EXAMPLES).map(({ key }) => key) };
      })
      .sort((a, b) => b.objects - a.objects || (a.reason < b.reason ? -1 : 1)),
  };
}
