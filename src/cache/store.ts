import type { LiveObject } from "../../providers/kubernetes/client";

/** Named functions from an object to the values under which {@link Store.byIndex} finds it. */
export type Indexers = Record<string, (object: LiveObject) => string[]>;

/** Objects by key and by the values of indexers, as client-go's stores have them. Callers must not modify the objects. */
export class Store {
  readonly #objects = new Map<string, LiveObject>();
  /** Index name → value → objects by key. */
  readonly #indexes: ReadonlyMap<string, Map<string, Map<string, LiveObject>>>;

  constructor(private readonly indexers: Indexers = {}) {
    this.#indexes = new Map(Object.keys(indexers).map((name) => [name, new Map()]));
  }

  get size(): number {
    return this.#objects.size;
  }

  /** The object of this key, see `objectKey`. */
  get(key: string): LiveObject | undefined {
    return this.#objects.get(key);
  }

  list(): LiveObject[] {
    return [...this.#objects.values()];
  }

  /** The objects for which the indexer of that name gave `value`. */
  byIndex(name: string, value: string): LiveObject[] {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new TypeError(`there is no index ${name}`);
    return [...(index.get(value)?.values() ?? [])];
  }

  /** Stores an object under its key, in place of a former object; `undefined` removes the former object. */
  protected set(key: string, object: LiveObject | undefined): void {
    const previous = this.#objects.get(key);
    for (const [name, index] of this.#indexes) {
      const valuesOf = (object: LiveObject | undefined) => (object && this.indexers[name]?.(object)) ?? [];
      for (const value of valuesOf(previous)) {
        const objects = index.get(value);
        objects?.delete(key);
        if (objects?.size === 0) index.delete(value);
      }
      for (const value of valuesOf(object)) {
        const objects = index.get(value) ?? new Map<string, LiveObject>();
        if (object !== undefined) index.set(value, objects.set(key, object));
      }
    }
    if (object === undefined) this.#objects.delete(key);
    else this.#objects.set(key, object);
  }
}
