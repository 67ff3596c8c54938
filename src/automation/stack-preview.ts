import type { AnyKind } from "../../stacks/contract/kind";
import type { UpdateFailure } from "./failures";
import type { ProgramOptions } from "./language-server";
import type { PlannedChange } from "./planned-changes";

/** An object in a stack that others share. */
export interface StackMember {
  kind: AnyKind;
  /** `namespace/name` */
  key: string;
}

/** What an update would do. */
export interface StackPreview {
  /** Whether there is such a stack yet. */
  exists: boolean;
  changes: PlannedChange[];
  /** Why it could not be told; empty when it could. */
  failures: UpdateFailure[];
}

export interface PreviewOptions extends ProgramOptions {
  /** Compare the state with the real world first, so that the repair of drift shows. */
  refresh?: boolean;
  signal?: AbortSignal | undefined;
  /** The object that is meant, where the stack is one that others share. */
  member?: StackMember;
}
