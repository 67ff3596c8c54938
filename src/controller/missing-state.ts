import { STATE_MISSING_ANNOTATION, type StateDecision } from "../../stacks/contract/annotations";
import { adoptsAfterCrash } from "../../stacks/contract/kind";
import type { StackObject, UpResult } from "../automation/engine";
import type { UpdateFailure } from "../automation/event-log";
import type { Step } from "./context";
import type { Facts } from "./facts";

/*
 * An object whose status names a stack that the backend lacks has lost its state: what it made is not known. That the state
 * is not there is no proof that nothing is there: nothing is made or deleted until a user decides. Kinds that find all that
 * they made by its mark take it over without one.
 */

/** What an update, or its preview, is told of the object whose stack it works on. */
export function objectForUpdate({ context: { kind }, facts }: Step<"facts", "kind">): StackObject {
  const isFree = adoptsAfterCrash(kind) || decides(facts.settings.stateDecision, "Adopt", "Recreate");
  return { uid: facts.object.metadata.uid, mustExist: hadStack(facts) && !isFree };
}

/** The same for a destroy, or its preview. Objects that carry the mark are part of a plan, and rows are not. */
export function objectForDestroy(
  { context: { kind }, facts }: Step<"facts", "kind">,
  { release, isPlanned }: { release: boolean; isPlanned: boolean },
): StackObject {
  const plansAll = isPlanned && adoptsAfterCrash(kind) && kind.capabilities.external === undefined;
  const isKnownLost = !isPlanned && adoptsAfterCrash(kind) && facts.stack.unlisted;
  const isFree = release || plansAll || isKnownLost || decides(facts.settings.stateDecision, "Forget");
  return { uid: facts.object.metadata.uid, mustExist: hadStack(facts) && !isFree };
}

function hadStack({ object }: Pick<Facts, "object">): boolean {
  return object.status.stack !== undefined;
}

function decides(decision: StateDecision | undefined, ...those: StateDecision[]): boolean {
  return decision !== undefined && those.includes(decision);
}

/** Whether an operation did nothing, as the state is lost. */
export function isStateMissing({ failures }: Pick<UpResult, "failures">): boolean {
  return failures.some(({ reason }) => reason === STATE_MISSING);
}

export const STATE_MISSING = "StateMissing";

/** Adds to `StateMissing` that the decision on the object has no effect on this operation, and which one has. */
export function explainDecision(
  failures: readonly UpdateFailure[],
  decision: StateDecision | undefined,
  operation: "update" | "deletion",
): UpdateFailure[] {
  const why = decision && NO_EFFECT[operation][decision];
  if (why === undefined) return [...failures];
  const note = `. The annotation ${STATE_MISSING_ANNOTATION} is ${decision}, which ${why}`;
  return failures.map((failure) =>
    failure.reason === STATE_MISSING ? { ...failure, message: failure.message + note } : failure,
  );
}

const NO_EFFECT: Readonly<Record<"update" | "deletion", Partial<Record<StateDecision, string>>>> = {
  update: { Forget: "takes effect when the object is deleted" },
  deletion: { Recreate: "has no effect on a deletion: Adopt and Forget have" },
};

/** Tells of an update that went on without the state, and so made the stack of an object that has had one. @returns whether it did */
export function reportMissingState(
  { context, object, facts, logger }: Step<"object" | "facts" | "logger", "writer">,
  { found, failures }: Pick<UpResult, "found" | "failures">,
): boolean {
  if (found || !hadStack(facts) || isStateMissing({ failures })) return false;
  const stack = facts.object.status.stack?.name;
  const { stateDecision: decision } = facts.settings;
  const what = decision === "Recreate" ? "were created again, as decided" : "were taken over by their marks and names";
  logger.warn({ stack, decision }, "state was missing");
  const note = `the stack ${stack} was not in the state's backend: the object's resources ${what}`;
  context.writer.event(object, "Warning", STATE_MISSING, note);
  return true;
}

/** Whether an update takes over what a lost state had, and nothing but a user's decision says that it finds all of that. */
export function adoptsPlugins({ context: { kind }, facts }: Step<"facts", "kind">): boolean {
  return facts.settings.stateDecision === "Adopt" && hadStack(facts) && !adoptsAfterCrash(kind);
}
