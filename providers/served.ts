import { ClassifiedError } from "./errors";
import { escapeReserved, findUnknown, unescapeReserved } from "./literal";
import { beginScripted, movesOf } from "./moves";
import { planOutdated } from "./observation";
import type { CallContext, CheckFailure, DynamicProvider, Properties } from "./provider";
import { isRetained, PROVIDER_PROPERTY, RETAINED } from "./resource-options";

/** The property of a resource whose `create` or `update` failed after it had made something. */
const INCOMPLETE = "__incomplete";

/**
 * A provider as the engine calls it. It
 *
 * - is given, and returns, what users wrote: see {@link escapeReserved};
 * - passes over the deletion of what another resource of the update has taken over: see {@link movesOf};
 * - looks right before it writes, in an update that is held to a plan;
 * - releases what is to stay ({@link RETAINED}): with the engine's own option it would hear of no deletion, and what stays would
 *   keep the marks of an owner that is gone;
 * - records what failed calls have made, see {@link ErrorDetails.made}: by Pulumi's own initialization errors, which are properties of
 *   what is thrown. A refresh would clear the engine's record of them, so the outputs have one as well.
 */
export function served<I extends object, O extends object>(provider: DynamicProvider<I, O>): DynamicProvider<I, O> {
  const { identify, observe } = provider;
  const [given, told] = [unescapeReserved, escapeReserved];
  const moves = movesOf(identify);
  const compare = async (id: string, inputs: I | undefined, outs: O | undefined, context: CallContext) => {
    const hold = provider.comparesInWrite ? undefined : context?.hold;
    if (observe === undefined || hold === undefined) return;
    if (!hold.admits(await observe(hold.asObserved(inputs), outs, context))) throw planOutdated(id);
  };
  return {
    ...(identify && { identify: (properties) => identify(given(properties)) }),
    ...(observe && { observe: (inputs, outs, context) => observe(given(inputs), given(outs), context) }),

    async configure() {
      beginScripted();
      await provider.configure?.();
    },

    async check(olds, news, context) {
      moves.note(given(news), "wanted", context);
      const { inputs, failures } = told(await provider.check(given(olds), given(news), context));
      const unknown = new Set(findUnknown(news).map(([[property]]) => property));
      if (unknown.size === 0) return { inputs: withRetained(inputs, news), failures };
      // What a preview does not know yet stays so, and cannot be refused.
      const isKnown = ({ property }: CheckFailure) => !unknown.has(property.split(".", 1)[0]);
      return { inputs: news, failures: failures.filter(isKnown) };
    },

    async diff(id, recorded, wanted, context) {
      const [olds, news] = [given(recorded), given(wanted)];
      const result = await provider.diff(given(id), olds, news, context);
      const changes = result.changes || isRetained(olds) !== isRetained(news);
      moves.noteDiff(olds, news, { ...result, changes }, context);
      return { ...result, changes: changes || INCOMPLETE in recorded };
    },

    create: (wanted, context) =>
      recordingMade(wanted, async () => {
        const inputs = given(wanted);
        await compare("what has its place", inputs, undefined, context);
        const { id, outs } = await provider.create(inputs, context);
        moves.note(inputs, "made", context);
        return told({ id, outs: withRetained(outs, inputs) });
      }),

    async read(id, recorded, context) {
      const result = await provider.read(given(id), given(recorded), context);
      if (result.id === undefined) return result;
      const props = withRetained(result.props, recorded);
      return told({ id: result.id, props: INCOMPLETE in recorded ? { ...props, [INCOMPLETE]: true } : props });
    },

    update: (id, recorded, wanted, context) =>
      recordingMade(wanted, async () => {
        const [olds, news] = [given(recorded), given(wanted)];
        await compare(given(id), news, olds, context);
        const { outs } = await provider.update(given(id), olds, news, context);
        moves.note(news, "made", context);
        return told({ outs: withRetained(outs, news) });
      }),

    async delete(recordedId, recorded, context) {
      const [id, outs] = [given(recordedId), given(recorded)];
      if (moves.isTakenOver(id, outs, context)) return;
      await compare(id, undefined, outs, context);
      await (isRetained(outs) ? provider.release(id, outs, context) : provider.delete(id, outs, context));
    },

    async release(recordedId, recorded, context) {
      const [id, outs] = [given(recordedId), given(recorded)];
      await compare(id, undefined, outs, context);
      await provider.release(id, outs, context);
    },
  };
}

function withRetained<T extends object>(outs: T, properties: object): T {
  return isRetained(properties) ? { ...outs, [RETAINED]: true } : outs;
}

async function recordingMade<T>(inputs: object, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (error instanceof ClassifiedError && error.made !== undefined) {
      const { [PROVIDER_PROPERTY]: stub } = inputs as Properties;
      error.id = error.made.id;
      error.properties = {
        ...escapeReserved(withRetained(error.made.outs, inputs)),
        ...(PROVIDER_PROPERTY in inputs && { [PROVIDER_PROPERTY]: stub }),
        [INCOMPLETE]: true,
      };
      error.reasons = [error.message];
    }
    throw error;
  }
}
