import { batched } from "../../providers/batched";
import { withParent } from "../../providers/dynamic";
import type { AnyKind } from "../../stacks/contract/kind";
import { objectComponent } from "../../stacks/contract/shared-stack";
import type { UpdateFailure } from "./failures";
import type { Program, ProgramOptions } from "./language-server";
import type { PlannedChange } from "./planned-changes";
import { keyOf } from "./urn";

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

/** What one object's program would do. */
export interface MemberPreview {
  stack: string;
  member: StackMember;
  program: Program;
  options: PreviewOptions;
}

/** One of several that were previewed together failed. */
class FailedTogether extends Error {}

/**
 * Previews objects that share a stack: one goes at once, and those that come meanwhile are the next preview together, as
 * each reads the whole stack. One that fails is repeated object by object, so that each has a result of its own.
 *
 * @param run previews a stack with these members' programs; the result is of all of them
 */
export function memberPreviews(
  run: (stack: string, members: readonly MemberPreview[]) => Promise<StackPreview>,
): (request: MemberPreview) => Promise<StackPreview> {
  const preview = batched<MemberPreview, StackPreview>({
    batchKey: ({ stack }) => stack,
    async run(members) {
      const together = await run(members[0]?.stack ?? "", members);
      if (members.length > 1 && together.failures.length > 0) throw new FailedTogether();
      return together;
    },
    isForAll: (error) => !(error instanceof FailedTogether),
  });
  return async (request) => partOf(await preview(request), request.member);
}

/** In a shared stack, an object without resources does not exist yet, although its stack does. */
function partOf({ exists, changes, failures }: StackPreview, { key }: StackMember): StackPreview {
  const own = changes.filter(({ urn }) => keyOf(urn) === key);
  const isAllNew = own.length > 0 && own.every(({ operation }) => operation === "create");
  return { exists: exists && !isAllNew, changes: own, failures };
}

/** The program of several objects of one stack. */
export function membersProgram(members: readonly Pick<MemberPreview, "member" | "program">[]): Program {
  return async () => {
    for (const { member, program } of members) await withParent(objectComponent(member.kind, member.key), program);
  };
}
