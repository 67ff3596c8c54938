import { RetryableError } from "./errors";
import type { CallContext, DiffResult, DynamicProvider } from "./provider";

/** What the resources of one update manage, by {@link DynamicProvider.identify}. */
interface Identities {
  /** By resources that are registered, and whether that is as they want it. */
  registered: Map<string, "wanted" | "made">;
  /** Those that a resource gives up to be made again, as itself. */
  remade: Set<string>;
}

/** By update: the operator runs many at the same time, and each has its own fence. */
const updates = new WeakMap<object, Identities>();
/** In a plain `pulumi up`, the SDK's script serves one update; `undefined` elsewhere. */
let scripted: object | undefined;

/** The SDK's script begins to use a provider: the update is the one of those before. */
export function beginScripted(): void {
  scripted ??= {};
}

/** `undefined` for calls that belong to no update. */
function identities(context: CallContext): Identities | undefined {
  const update = context?.fence ?? scripted;
  if (update === undefined) return undefined;
  const known = updates.get(update) ?? { registered: new Map(), remade: new Set() };
  updates.set(update, known);
  return known;
}

let nextProvider = 0;

/**
 * What a provider's resources take over from each other: a resource that is renamed in a program keeps its live object or row under
 * the new name. The engine knows only names, so it creates the new resource, which adopts the existing object, and deletes the old
 * resource: that deletion passes over the object. Where the creation has failed, the old resource stays.
 */
export function movesOf<I extends object>(identify: DynamicProvider<I>["identify"]) {
  const prefix = `${nextProvider++} `;
  const identityOf = (properties: object) => {
    const identity = identify?.(properties as Partial<I>);
    return identity === undefined ? undefined : prefix + identity;
  };
  const note = (properties: object, state: "wanted" | "made", context: CallContext) => {
    const identity = identityOf(properties);
    if (identity !== undefined) identities(context)?.registered.set(identity, state);
  };
  return {
    note,
    noteDiff(olds: object, news: object, { changes, replaces }: DiffResult, context: CallContext): void {
      const identity = identityOf(news);
      // A refresh compares as well, of what no program has registered yet.
      if (!changes && identities(context)?.registered.has(identity ?? "")) note(news, "made", context);
      else if (replaces?.length && identity !== undefined && identity === identityOf(olds)) {
        identities(context)?.remade.add(identity);
      }
    },
    /** Whether another resource has taken over what is to be deleted. @throws RetryableError `Moving` while one has yet to do so */
    isTakenOver(id: string, outs: object, context: CallContext): boolean {
      const identity = identityOf(outs) ?? "";
      const all = identities(context);
      const state = all?.remade.has(identity) ? undefined : all?.registered.get(identity);
      if (state !== "wanted") return state === "made";
      throw new RetryableError("Moving", `${id} stays: the resource that is to take it over was not made or updated`);
    },
  };
}
