/** The plain values that cross the engine: what a resource was given and what it became. */
export type Properties = Record<string, unknown>;

/** A property that was refused, and why; shown by the engine beside the resource. */
export interface CheckFailure {
  property: string;
  reason: string;
}

/** What has to be done to turn the recorded state into the wanted one. */
export interface DiffResult {
  changes: boolean;
  /** Properties whose change needs a new resource instead of an update in place. */
  replaces?: string[];
  deleteBeforeReplace?: boolean;
}

/**
 * The life of one type of resource, in Pulumi's dynamic-provider form.
 *
 * `Inputs` is what a program gives, `Outputs` what the state records. Providers are stateless: credentials and
 * connections come from the environment when a method runs, never from properties.
 */
export interface DynamicProvider<I extends object = Properties, O extends object = Properties> {
  check(olds: Properties, news: Properties): Promise<{ inputs: Properties; failures: CheckFailure[] }>;
  diff(id: string, olds: O, news: I): Promise<DiffResult>;
  create(inputs: I): Promise<{ id: string; outs: O }>;
  /** The live state, or no `id` when the thing is gone. */
  read(id: string, outs: O): Promise<{ id: string; props: O } | { id?: undefined; props?: undefined }>;
  update(id: string, olds: O, news: I): Promise<{ outs: O }>;
  /** Succeeds when there is nothing left to delete. */
  delete(id: string, outs: O): Promise<void>;
  /** Instead of `delete` when what was made is to stay, unmanaged. */
  release(id: string, outs: O): Promise<void>;
}
