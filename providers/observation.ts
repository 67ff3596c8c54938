import { hash } from "node:crypto";
import { canonicalJson } from "./canonical-json";
import { RetryableError } from "./errors";
import { findUnknown, type Unknown, withUnknown } from "./literal";
import type { Hold } from "./provider";

/**
 * By URN, what the writes of the resource would overwrite in the world, as it was when a preview looked: a digest for each call, as
 * JSON. Resources of providers that cannot tell have none.
 */
export type Observations = ReadonlyMap<string, string>;

/** A call that writes. A replacement has two of one URN. */
export type WriteCall = "Create" | "Update" | "Delete";

/** What was observed for one call, with the inputs that were not known then. */
type Observed = [call: WriteCall, digest: string, unknown?: Unknown[]];

function digestOf(urn: string, live: unknown): string {
  return hash("sha256", canonicalJson([urn, live]));
}

/** An observation with one call more. @param inputs with what the preview does not know */
export function withObserved(
  before: string | undefined,
  urn: string,
  call: WriteCall,
  live: unknown,
  inputs: object | undefined,
): string {
  const unknown = findUnknown(inputs);
  const digest = digestOf(urn, live);
  const observed: Observed = unknown.length > 0 ? [call, digest, unknown] : [call, digest];
  const all = [...parsed(before), observed];
  // The steps of a resource are observed in any order.
  return JSON.stringify(all.sort(([a, one], [b, other]) => (a + one < b + other ? -1 : 1)));
}

/** Whether a deletion has found that nothing is left of a resource. */
export function foundNothing(observations: Observations, urn: string): boolean {
  return observations.get(urn) === withObserved(undefined, urn, "Delete", null, undefined);
}

/** Whether a creation has found something that it would overwrite. */
export function foundExisting(observations: Observations, urn: string): boolean {
  const nothing = digestOf(urn, null);
  return parsed(observations.get(urn)).some(([call, digest]) => call === "Create" && digest !== nothing);
}

function parsed(observation: string | undefined): Observed[] {
  return observation === undefined ? [] : (JSON.parse(observation) as Observed[]);
}

export function holdOf(observations: Observations, urn: string, call: WriteCall): Hold {
  const observed = parsed(observations.get(urn)).filter(([of]) => of === call);
  if (observed.length === 0) {
    throw new RetryableError("PlanOutdated", "nothing is known of what was there when the plan was made");
  }
  const hold: Hold = {
    admits: (live) =>
      live === null || live === undefined || observed.some(([, digest]) => digest === digestOf(urn, live)),
    asObserved: (inputs) => withUnknown(inputs, observed[0]?.[2] ?? []),
  };
  holds.set(hold, { urn, call, observation: observations.get(urn) });
  return hold;
}

const holds = new WeakMap<Hold, { urn: string; call: WriteCall; observation: string | undefined }>();

/** What {@link holdOf} makes a hold of, for another process. */
export function holdDataOf(hold: Hold) {
  return holds.get(hold);
}

/**
 * The error about a write that would overwrite something else than was observed.
 *
 * @param changed names of fields that may be why
 */
export function planOutdated(what: string, changed: readonly string[] = []): RetryableError {
  const fields = changed.length > 0 ? `; the state has other values of ${changed.join(", ")}` : "";
  return new RetryableError("PlanOutdated", `${what} is not as it was when the plan was made${fields}`);
}
