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
    async check(olds, news) {
      const { inputs, failures } = await provider.check(olds, news);
      return { inputs: keep(inputs, news), failures };
    },
    async diff(id, olds, news) {
      const result = await provider.diff(id, olds, news);
      return isRetained(olds) === isRetained(news) ? result : { ...result, changes: true };
    },
    async create(inputs) {
      const { id, outs } = await provider.create(inputs);
      return { id, outs: keep(outs, inputs) };
    },
    async read(id, outs) {
      const result = await provider.read(id, outs);
      return result.id === undefined ? result : { id: result.id, props: keep(result.props, outs) };
    },
    async update(id, olds, news) {
      return { outs: keep((await provider.update(id, olds, news)).outs, news) };
    },
    delete: (id, outs) => (isRetained(outs) ? provider.release(id, outs) : provider.delete(id, outs)),
  };
}

/** Whether a resource is released where it would be deleted. */
export function isRetained(properties: object): boolean {
  return (properties as Properties)[RETAINED] === true;
}
