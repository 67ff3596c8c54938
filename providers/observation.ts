import { AsyncLocalStorage } from "node:async_hooks";
import { hash } from "node:crypto";
import { canonicalJson } from "./canonical-json";
import { RetryableError } from "./errors";
import { findUnknown, type Unknown, withUnknown } from "./literal";
import type { DynamicProvider } from "./provider";

/**
 * By URN, a digest of what a write of the resource would overwrite in the world, as it was when a preview looked. Resources
 * of providers that cannot tell have none.
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

function parsed(observation: string | undefined): Observed[] {
  return observation === undefined ? [] : (JSON.parse(observation) as Observed[]);
}

/** What a write is held to. */
export interface Hold {
  /** Whether it may overwrite this; `null`, which is nothing, always. */
  admits(live: unknown): boolean;
  /** Inputs as far as they were known when the world was observed. */
  asObserved<I>(inputs: I): I;
}

/** @throws RetryableError `PlanOutdated` when nothing was observed */
export function holdOf(observations: Observations, urn: string, call: WriteCall): Hold {
  const observed = parsed(observations.get(urn)).filter(([of]) => of === call);
  if (observed.length === 0) {
    throw new RetryableError("PlanOutdated", "nothing is known of what was there when the plan was made");
  }
  return {
    admits: (live) =>
      live === null || live === undefined || observed.some(([, digest]) => digest === digestOf(urn, live)),
    asObserved: (inputs) => withUnknown(inputs, observed[0]?.[2] ?? []),
  };
}

const holds = new AsyncLocalStorage<Hold | undefined>();

/** Runs a provider's call that may write only over what the hold admits. */
export function withinHold<T>(hold: Hold, write: () => T): T {
  return holds.run(hold, write);
}

/** What the call that is running is held to; `undefined` where it may write over whatever there is. */
export function currentHold(): Hold | undefined {
  return holds.getStore();
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

/** A provider that looks right before it writes, unless it compares in the write itself. */
export function comparing<I extends object, O extends object>(provider: DynamicProvider<I, O>): DynamicProvider<I, O> {
  const { observe } = provider;
  if (observe === undefined || provider.comparesInWrite) return provider;
  const compare = async (id: string, inputs: I | undefined, outs: O | undefined): Promise<void> => {
    const hold = currentHold();
    if (hold === undefined || hold.admits(await observe(hold.asObserved(inputs), outs))) return;
    throw planOutdated(id);
  };
  return {
    ...provider,
    async create(inputs) {
      await compare("what has its place", inputs, undefined);
      return provider.create(inputs);
    },
    async update(id, olds, news) {
      await compare(id, news, olds);
      return provider.update(id, olds, news);
    },
    async delete(id, outs) {
      await compare(id, undefined, outs);
      return provider.delete(id, outs);
    },
    async release(id, outs) {
      await compare(id, undefined, outs);
      return provider.release(id, outs);
    },
  };
}
