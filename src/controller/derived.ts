import type { LiveObject } from "../../providers/kubernetes/client";

/** What the code of a kind derives from objects of a cache: asked for before the cache has them, as indexers wait for nothing. */
export class Derived {
  readonly #values = new WeakMap<LiveObject, string[]>();

  /** @param failed told of an object that has no values for that reason */
  constructor(
    private readonly derive: (object: LiveObject) => Promise<string[]>,
    private readonly failed: (error: unknown) => void = () => {},
  ) {}

  readonly prepare = async (objects: readonly LiveObject[]): Promise<void> => {
    await Promise.all(
      objects.map(async (object) => {
        try {
          this.#values.set(object, await this.derive(object));
        } catch (error) {
          this.failed(error);
        }
      }),
    );
  };

  readonly of = (object: LiveObject): string[] => this.#values.get(object) ?? [];
}
