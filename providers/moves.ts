import { RetryableError } from "./errors";
import type { CallContext, DynamicProvider } from "./provider";

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

/** `undefined` for calls that belong to no update. */
function identities(context: CallContext): Identities | undefined {
  const update = context?.fence ?? scripted;
  if (update === undefined) return undefined;
  const known = updates.get(update) ?? { registered: new Map(), remade: new Set() };
  updates.set(update, known);
  return known;
}

/**
 * A provider whose deletions skip things that another resource of the same update manages: a resource that is renamed in a
 * program keeps its live object or row under the new name. The engine knows only names, so it creates the new resource, which
 * adopts the existing object, and deletes the old resource. Where the creation has failed, the old resource stays.
 */
export function movingRenamed<I extends object, O extends object>(
  provider: DynamicProvider<I, O>,
): DynamicProvider<I, O> {
  const { identify } = provider;
  if (identify === undefined) return provider;
  const prefix = `${nextProvider++} `;
  const identityOf = (properties: object) => {
    const identity = identify(properties as Partial<I>);
    return identity === undefined ? undefined : prefix + identity;
  };
  const note = (properties: object, state: "wanted" | "made", context: CallContext) => {
    const identity = identityOf(properties);
    if (identity !== undefined) identities(context)?.registered.set(identity, state);
  };
  return {
    ...provider,
    async configure() {
      scripted = {};
    },
    async check(olds, news, context) {
      note(news, "wanted", context);
      return provider.check(olds, news, context);
    },
    async diff(id, olds, news, context) {
      const result = await provider.diff(id, olds, news, context);
      const identity = identityOf(news);
      // A refresh compares as well, of what no program has registered yet.
      if (!result.changes && identities(context)?.registered.has(identity ?? "")) note(news, "made", context);
      else if (result.replaces?.length && identity !== undefined && identity === identityOf(olds)) {
        identities(context)?.remade.add(identity);
      }
      return result;
    },
    async create(inputs, context) {
      const created = await provider.create(inputs, context);
      note(inputs, "made", context);
      return created;
    },
    async update(id, olds, news, context) {
      const updated = await provider.update(id, olds, news, context);
      note(news, "made", context);
      return updated;
    },
    async delete(id, outs, context) {
      const identity = identityOf(outs);
      const all = identities(context);
      const update = identity === undefined || all?.remade.has(identity) ? undefined : all;
      const state = update?.registered.get(identity as string);
      if (state === undefined) return provider.delete(id, outs, context);
      if (state === "wanted") {
        throw new RetryableError("Moving", `${id} stays: the resource that is to take it over was not made or updated`);
      }
    },
  };
}

let nextProvider = 0;
