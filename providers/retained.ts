import type { DynamicProvider, Properties } from "./provider";

/** The property of resources with Pulumi's option `retainOnDelete`. */
export const RETAINED = "__retainOnDelete";

/**
 * A provider that releases what is to stay. With the engine's own option it would hear of no deletion, and what stays would keep
 * the marks of an owner that is gone.
 */
export function retaining<I extends object, O extends object>(provider: DynamicProvider<I, O>): DynamicProvider<I, O> {
  const keep = <T extends object>(outs: T, properties: object): T => ({
    ...outs,
    ...(isRetained(properties) && { [RETAINED]: true }),
  });
  return {
    ...provider,
    async check(olds, news, context) {
      const { inputs, failures } = await provider.check(olds, news, context);
      return { inputs: keep(inputs, news), failures };
    },
    async diff(id, olds, news, context) {
      const result = await provider.diff(id, olds, news, context);
      return isRetained(olds) === isRetained(news) ? result : { ...result, changes: true };
    },
    async create(inputs, context) {
      const { id, outs } = await provider.create(inputs, context);
      return { id, outs: keep(outs, inputs) };
    },
    async read(id, outs, context) {
      const result = await provider.read(id, outs, context);
      return result.id === undefined ? result : { id: result.id, props: keep(result.props, outs) };
    },
    async update(id, olds, news, context) {
      return { outs: keep((await provider.update(id, olds, news, context)).outs, news) };
    },
    delete: (id, outs, context) =>
      isRetained(outs) ? provider.release(id, outs, context) : provider.delete(id, outs, context),
  };
}

/** Whether a resource is released where it would be deleted. */
export function isRetained(properties: object): boolean {
  return (properties as Properties)[RETAINED] === true;
}
