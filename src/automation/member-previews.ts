import { withParent } from "../../providers/dynamic";
import { belongsTo, objectComponent } from "../../stacks/contract/shared-stack";
import type { Program } from "./language-server";
import type { PreviewOptions, StackMember, StackPreview } from "./stack-preview";

/** What one object's program would do. */
export interface MemberPreview {
  member: StackMember;
  program: Program;
  options: PreviewOptions;
}

interface Waiting extends MemberPreview {
  resolve(preview: StackPreview): void;
  reject(error: unknown): void;
}

/**
 * Previews objects that share a stack: one goes at once, and those that come meanwhile are the next preview together, as
 * each reads the whole stack. One that fails is repeated object by object, so that each has a result of its own.
 */
export class MemberPreviews {
  readonly #run: (stack: string, members: readonly MemberPreview[]) => Promise<StackPreview>;
  /** What waits for the preview of a stack that is running. */
  readonly #queues = new Map<string, Waiting[]>();

  /** @param run previews a stack with these members' programs; the result is of all of them */
  constructor(run: (stack: string, members: readonly MemberPreview[]) => Promise<StackPreview>) {
    this.#run = run;
  }

  preview(stack: string, request: MemberPreview): Promise<StackPreview> {
    return new Promise((resolve, reject) => {
      const waiting = { ...request, resolve, reject };
      const queue = this.#queues.get(stack);
      if (queue !== undefined) queue.push(waiting);
      else void this.#drain(stack, [waiting]);
    });
  }

  async #drain(stack: string, queue: Waiting[]): Promise<void> {
    this.#queues.set(stack, queue);
    while (queue.length > 0) await this.#previewGroup(stack, queue.splice(0));
    this.#queues.delete(stack);
  }

  async #previewGroup(stack: string, group: readonly Waiting[]): Promise<void> {
    try {
      const preview = await this.#run(stack, group);
      if (group.length > 1 && preview.failures.length > 0) {
        for (const one of group) await this.#previewGroup(stack, [one]);
        return;
      }
      for (const { member, resolve } of group) resolve(shareOf(preview, member));
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }
}

/** In a shared stack, an object without resources does not exist yet, although its stack does. */
function shareOf({ exists, changes, failures }: StackPreview, { key }: StackMember): StackPreview {
  const own = changes.filter(({ name }) => belongsTo(key, name));
  const isAllNew = own.length > 0 && own.every(({ operation }) => operation === "create");
  return { exists: exists && !isAllNew, changes: own, failures };
}

/** The program of several objects of one stack. */
export function membersProgram(members: readonly Omit<MemberPreview, "options">[]): Program {
  return async () => {
    for (const { member, program } of members) await withParent(objectComponent(member.kind, member.key), program);
  };
}
