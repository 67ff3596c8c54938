import type { LiveObject } from "../../providers/kubernetes/client";

/** The value of what could not be derived: such an object counts for each value. */
const UNKNOWN = "unknown";

/** What is derived from an object in a cache. */
export interface DerivedOptions {
  derive(object: LiveObject): Promise<string[]>;
  /** Told of an object whose values are unknown. */
  failed(object: LiveObject, error: unknown): void;
}

/** What the code of a kind derives from objects of a cache: asked for before the cache has them, as indexers wait for nothing. */
export class Derived {
  readonly #values = new WeakMap<LiveObject, string[]>();

  constructor(private readonly options: DerivedOptions) {}

  readonly prepare = async (objects: readonly LiveObject[]): Promise<void> => {
    await Promise.all(
      objects.map(async (object) => {
        try {
          this.#values.set(object, await this.options.derive(object));
        } catch (error) {
          this.#values.set(object, [UNKNOWN]);
          this.options.failed(object, error);
        }
      }),
    );
  };

  readonly of = (object: LiveObject): string[] => this.#values.get(object) ?? [];

  /** Under which values of an index an object is that has this value, or may have it. */
  static readonly mayHave = (value: string): string[] => [value, UNKNOWN];

  readonly isUnknown = (object: LiveObject): boolean => this.of(object).includes(UNKNOWN);
}
