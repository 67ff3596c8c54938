import { ClassifiedError } from "./errors";
import { escapeReserved } from "./literal";
import type { DynamicProvider, Properties } from "./provider";
import { RETAINED } from "./retained";

/** The property of a resource whose `create` or `update` failed after it had made something. */
const INCOMPLETE = "__incomplete";

/**
 * A provider whose failed calls record what they have made, see {@link ErrorDetails.made}: by Pulumi's own initialization errors, which
 * are properties of what is thrown. A refresh would clear the engine's record of them, so the outputs have one as well.
 *
 * @param kept properties that the state needs besides the provider's own
 */
export function recordingIncomplete<I extends object, O extends object>(
  provider: DynamicProvider<I, O>,
  kept: readonly string[],
): DynamicProvider<I, O> {
  const recording = async <T>(call: Promise<T>, inputs: Properties): Promise<T> => {
    try {
      return await call;
    } catch (error) {
      if (error instanceof ClassifiedError && error.made !== undefined) {
        const given = [...kept, RETAINED].filter((name) => name in inputs).map((name) => [name, inputs[name]]);
        error.id = error.made.id;
        error.properties = { ...escapeReserved(error.made.outs), ...Object.fromEntries(given), [INCOMPLETE]: true };
        error.reasons = [error.message];
      }
      throw error;
    }
  };
  return {
    ...provider,
    async diff(id, olds, news, context) {
      const result = await provider.diff(id, olds, news, context);
      return INCOMPLETE in olds ? { ...result, changes: true } : result;
    },
    create: (inputs, context) => recording(provider.create(inputs, context), inputs as Properties),
    async read(id, outs, context) {
      const result = await provider.read(id, outs, context);
      if (result.id === undefined || !(INCOMPLETE in outs)) return result;
      return { ...result, props: { ...result.props, [INCOMPLETE]: true } };
    },
    update: (id, olds, news, context) => recording(provider.update(id, olds, news, context), news as Properties),
  };
}
