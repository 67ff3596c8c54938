import type { Fence } from "./fence";
import type { Log } from "./log";
import type { Snapshot } from "./snapshot";

/** The plain values that cross the engine: what a resource was given and what it became. */
export type Properties = Record<string, unknown>;

/** A property that was refused, and why; shown by the engine beside the resource. */
export interface CheckFailure {
  property: string;
  reason: string;
}

/** A field of something live that is not as it should be. */
export interface FieldDrift {
  /** Its path, such as `spec.replicas`. */
  field: string;
  wanted: unknown;
  /** Absent where there is none. */
  live?: unknown;
  /** Who has set it, if that is known. */
  by?: string;
}

/** What has to be done to turn the recorded state into the wanted one. */
export interface DiffResult {
  changes: boolean;
  /** Properties whose change needs a new resource instead of an update in place. */
  replaces?: string[];
  deleteBeforeReplace?: boolean;
}

/** What a write is held to. */
export interface Hold {
  /** Whether it may overwrite this; `null`, which is nothing, always. */
  admits(live: unknown): boolean;
  /** Inputs as far as they were known when the world was observed. */
  asObserved<I>(inputs: I): I;
}

/** The object whose stack is updated. */
export interface UpdatedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid: string;
}

/** What all calls of one update, or of other work for an object, have in common. */
export interface WorkContext {
  /** The right to write, which is to be checked right before each write: `context?.fence.check()`. */
  readonly fence: Fence;
  readonly log: Log;
  /** Tells what a call does that takes long: the status of the object shows the last message, of at most 200 characters. */
  progress(message: string): void;
  /** Absent in the preview of an object that the cluster does not have. */
  readonly object?: UpdatedObject | undefined;
}

/**
 * What the operator tells a call. Pulumi's own script, which serves a plain `pulumi up`, calls without: such a call may write at any
 * time and over whatever there is, and wait for what ends later.
 */
export interface ProviderContext extends WorkContext {
  /** Aborted when the call is to end early: its update was interrupted, its time is over, or it may not write any more. */
  readonly signal: AbortSignal;
  /** What a write is held to, in an update that is held to a plan; absent where it may write over whatever there is. */
  readonly hold?: Hold | undefined;
  /** What the same preview has read already. */
  readonly snapshot?: Snapshot | undefined;
}

/** Where Pulumi's own script may call, there is none. */
export type CallContext = ProviderContext | undefined;

/**
 * The life of one type of resource, in Pulumi's dynamic-provider form.
 *
 * `Inputs` is what a program gives, `Outputs` what the state records. Providers are stateless: credentials and
 * connections come from the environment when a method runs, never from properties. The last argument of each call is what
 * the operator tells it, see {@link ProviderContext}.
 */
export interface DynamicProvider<I extends object = Properties, O extends object = Properties> {
  check(
    olds: Properties,
    news: Properties,
    context?: ProviderContext,
  ): Promise<{ inputs: Properties; failures: CheckFailure[] }>;
  diff(id: string, olds: O, news: I, context?: ProviderContext): Promise<DiffResult>;
  create(inputs: I, context?: ProviderContext): Promise<{ id: string; outs: O }>;
  /**
   * The live state, or no `id` when the thing is gone. A property `drift`, a list of {@link FieldDrift}, is told in Events
   * and in the history when an update corrects it.
   */
  read(
    id: string,
    outs: O,
    context?: ProviderContext,
  ): Promise<{ id: string; props: O } | { id?: undefined; props?: undefined }>;
  update(id: string, olds: O, news: I, context?: ProviderContext): Promise<{ outs: O }>;
  /** Succeeds when there is nothing left to delete. */
  delete(id: string, outs: O, context?: ProviderContext): Promise<void>;
  /**
   * What the inputs or outputs of a resource describe in the real world, such as a name; `undefined` if they do not tell yet. Pure.
   *
   * Where two resources of a stack describe the same thing, because one was renamed in the program, it is moved: `create` must
   * adopt it, and the deletion of the other resource passes over it. Without this function, it is deleted, and made again.
   */
  identify?(properties: Partial<I>): string | undefined;
  /**
   * What a write of the resource would overwrite in the world, as plain JSON, so that an update that is held to a plan writes
   * only where the same is still there. `null` is nothing: it is always written over. What this very write has made before, and
   * was cut off, counts as nothing too. Of a resource that is to be deleted there are no inputs, of one that is to be made no outputs.
   *
   * Fields that move by themselves, such as a status, do not belong in it. Only a digest leaves the process.
   * Without this function, as with Pulumi's plugins, an update overwrites whatever is there.
   */
  observe?(inputs: I | undefined, outs: O | undefined, context?: ProviderContext): Promise<unknown>;
  /** Whether each write compares what it finds with {@link ProviderContext.hold} itself; otherwise `observe` is called right before it. */
  comparesInWrite?: boolean;
  /** Called once by the SDK's script, which serves one update, before all else. */
  configure?(): Promise<void>;
  /** Instead of `delete` when what was made is to stay, unmanaged. */
  release(id: string, outs: O, context?: ProviderContext): Promise<void>;
}
