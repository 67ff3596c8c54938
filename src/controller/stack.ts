import { failureOf, TerminalError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { KEEP_CONTENTS, ownerUidOf } from "../../providers/kubernetes/ownership";
import { type DeclaredResource, NotRegisteredError } from "../../providers/registration";
import { STATE_MISSING_ANNOTATION } from "../../stacks/contract/annotations";
import { adoptsAfterCrash, parseServed, statusOf } from "../../stacks/contract/kind";
import { type KindObject, objectId, parseObjectId, stackName } from "../../stacks/contract/object";
import { metadataDigest, observingMetadata, referenceRecords } from "../../stacks/contract/references";
import type { StackObject, UpResult } from "../automation/engine";
import type { StackResource, UpdateFailure } from "../automation/event-log";
import { type Program, programOf } from "../automation/program";
import { declarationsDigest } from "../plan/digest";
import {
  type ProgramInputs,
  planDestroy,
  planUpdate,
  programContext,
  readInputs,
  type StackPlan,
  type View,
} from "../plan/plan";
import type { UpdateAction } from "./action";
import type { Step } from "./context";
import type { Pass } from "./gate";
import { ownedOf, recordedIds } from "./kind-cache";
import { adoptsPlugins, objectForDestroy, objectForUpdate, reportMissingState, STATE_MISSING } from "./missing-state";
import { type Viewed, viewOf } from "./operator-view";
import { outputFields } from "./output-fields";
import { describeApproval } from "./plan-decision";
import { logOf } from "./work";

type StackStep = Viewed &
  Step<"facts" | "signal" | "stop" | "logger", "engine" | "writer" | "planKey" | "programDigest">;

/** What came of an update of an object's stack. */
export interface AppliedResult extends UpResult {
  /** Whether the object had a stack before, which the backend lacked. */
  madeAgain: boolean;
  /** See {@link declarationsDigest}. */
  declarations: string | undefined;
}

/** One object's stack in one reconcile: what is planned of it and what is done to it, for the same object and in the same view. */
export class ObjectStack {
  readonly #view: View;
  #read: ReturnType<ObjectStack["read"]> | undefined;

  constructor(private readonly step: StackStep) {
    this.#view = viewOf(step);
  }

  /** The object as its program takes it, and what the program depends on besides. Both are read once. */
  read(): Promise<{ parsed: KindObject; inputs: ProgramInputs }> {
    this.#read ??= this.#readOnce();
    return this.#read;
  }

  async #readOnce(): Promise<{ parsed: KindObject; inputs: ProgramInputs }> {
    const { context, object } = this.step;
    const parsed = await parseServed(context.kind, object);
    return { parsed, inputs: await readInputs(this.#view, context.kind, parsed) };
  }

  /** The object's program with what it may know, from the object as it is when its update begins. */
  program(parsed: KindObject, inputs: ProgramInputs): (current: LiveObject) => Program {
    const { context, object, state, logger } = this.step;
    const { kind } = context;
    return (current) => {
      const known = programContext(kind, object, inputs, recordedIds(current));
      const told = { ...known, cached: ownedOf(this.step), log: logOf(logger, "program") };
      const observed = observingMetadata(parsed, () => {
        state.reads = { ...state.reads, metadata: metadataDigest(object.metadata) };
      });
      const program = programOf(kind, observed, told);
      const noting =
        <Given extends unknown[]>(work: (...given: Given) => void | Promise<void>) =>
        async (...given: Given) => {
          const references = await referenceRecords(kind, parsed, inputs.referenced);
          state.reads = references.length > 0 ? { references } : {};
          try {
            await work(...given);
          } catch (error) {
            // A resource that could not be made, also because a deletion cut the update off, is the update's failure.
            if (!(error instanceof NotRegisteredError) && failureOf(error).errorClass === "bug")
              logger.error({ err: error }, "the kind's program failed");
            throw error;
          }
        };
      return Object.assign(noting(program), program.runInSdk && { runInSdk: noting(program.runInSdk) });
    };
  }

  planUpdate(program: Program, { binds }: { binds: boolean }): Promise<StackPlan> {
    return planUpdate({ ...this.#request(objectForUpdate(this.step)), program, refresh: true, binds });
  }

  planDestroy(release: boolean): Promise<StackPlan> {
    const request = this.#request(objectForDestroy(this.step, { release, isPlanned: true }));
    return planDestroy({ ...request, release, refresh: false, binds: true });
  }

  /** @throws TerminalError `StateMissing`, see {@link adoptsPlugins} */
  async up(
    program: Program,
    { bound, approval }: Pass,
    { refresh, cause }: Pick<UpdateAction, "refresh" | "cause">,
  ): Promise<AppliedResult> {
    const { context, signal, stop } = this.step;
    const { kind, engine } = context;
    await this.#refusePluginsCreations(program);
    // What an update that is cut off has made and not saved may need another approval; what a destroy has deleted does not.
    const savesOnce = adoptsAfterCrash(kind) && approval === undefined;
    const { sdkRuntime } = kind.capabilities;
    const told: { declared?: readonly DeclaredResource[] } = {};
    const onDeclared = (declared: readonly DeclaredResource[]) => void Object.assign(told, { declared });
    const result = await engine.up(this.#name, program, {
      ...(kind.capabilities.outputs && { outputs: this.#outputs }),
      ...{ object: objectForUpdate(this.step), sdkRuntime, savesOnce, onDeclared, signal, stop },
      ...{ refresh: refresh || bound !== undefined, plan: bound?.plan, observed: bound?.observed },
      message: approval ? `approved ${describeApproval(approval)}` : cause === "Requested" ? "requested" : undefined,
    });
    const madeAgain = reportMissingState(this.step, result);
    const declarations = told.declared && (await declarationsDigest(context, told.declared));
    return { ...result, madeAgain, declarations };
  }

  async destroy(release: boolean, { bound, approval }: Pass): Promise<UpResult> {
    const { context, signal } = this.step;
    return context.engine.destroy(this.#name, {
      object: objectForDestroy(this.step, { release, isPlanned: bound !== undefined }),
      ...{ release, savesOnce: adoptsAfterCrash(context.kind), signal },
      ...{ plan: bound?.plan, observed: bound?.observed },
      message: approval && `approved ${describeApproval(approval)}`,
    });
  }

  readonly #outputs = (resources: readonly StackResource[]) =>
    outputFields(this.step.context.kind, this.step.object, resources);

  get #name(): string {
    return stackName(this.step.context.kind, this.step.item.key);
  }

  /** What all plans have in common. */
  #request(stackObject: StackObject) {
    const { context, object } = this.step;
    const signal = AbortSignal.any([this.step.signal, this.step.stop]);
    return { kind: context.kind, object, view: this.#view, engine: context.engine, signal, stackObject };
  }

  /** Before an update that is to adopt: nothing leads to what a plugin has made, and it would be made once more. */
  async #refusePluginsCreations(program: Program): Promise<void> {
    if (!adoptsPlugins(this.step)) return;
    const { exists, changes } = await this.planUpdate(program, { binds: false });
    const made = changes.filter(({ operation, ofPlugin }) => operation === "create" && ofPlugin);
    if (exists || made.length === 0) return;
    const names = made.map(({ type, name }) => `${type} ${name}`).join(", ");
    throw new TerminalError(
      STATE_MISSING,
      `a plugin cannot adopt ${names}. Restore the state, or change the annotation ${STATE_MISSING_ANNOTATION} to Recreate, ` +
        "or to Forget and delete the object",
    );
  }
}

/** An object's program, after the object has claimed what it may hold alone. */
export interface ClaimedProgram {
  /** A failure for each thing that another object holds; the program leaves it out. */
  conflicts: UpdateFailure[];
  /** @param object the object as it is when its program runs */
  of(object: LiveObject): Program;
  /** After the update: the object holds what it claims, and nothing else. */
  retainClaims(): void;
}

/** Claims what an object may hold alone, and prepares the program of its update. */
export async function claimProgram(
  step: Step<"item" | "object", "kind" | "cache" | "claims">,
  stack: Pick<ObjectStack, "program">,
  parsed: KindObject,
  inputs: ProgramInputs,
): Promise<ClaimedProgram> {
  const { context, object } = step;
  const { kind, claims } = context;
  const exclusive = kind.capabilities.claims;
  const { uid } = object.metadata;
  const { watched } = inputs;
  const withheld = new Set<string>();
  const all = (await exclusive?.of(parsed, watched)) ?? [];
  const claimed = () => all.filter((id) => !withheld.has(id));
  const mayWithhold = exclusive?.withhold !== undefined && statusOf(object).stack !== undefined;
  const conflicts: UpdateFailure[] = [];
  for (let taken = take(step, claimed(), watched); taken !== undefined; ) {
    if (!mayWithhold) throw new TerminalError("Conflict", taken.message);
    withheld.add(taken.id);
    conflicts.push({ errorClass: "terminal", reason: "Conflict", message: taken.message });
    taken = take(step, claimed(), watched);
  }
  const permitted = withheld.size > 0 ? ((await exclusive?.withhold?.(parsed, withheld)) ?? parsed) : parsed;
  return {
    conflicts,
    of: stack.program(permitted, inputs),
    retainClaims: () => exclusive && claims.retain(uid, claimed()),
  };
}

/** Takes all of these ids, or says which of them another object holds. */
function take(
  { context: { claims, cache }, item, object }: Step<"item" | "object", "claims" | "cache">,
  ids: string[],
  watched: readonly LiveObject[],
): { id: string; message: string } | undefined {
  const conflict = claims.take(object.metadata.uid, ids, item, (id) => {
    const live = watched.find((object) => objectId(object) === id) ?? cache.view(id)?.object;
    return live && ownerUidOf(live);
  });
  if (conflict === undefined) return undefined;
  const { id, holder } = conflict;
  const [name, owner] = [parseObjectId(id).name, cache.describeOwner(holder) ?? holder];
  return {
    id,
    message: `${name} belongs to ${owner}; Kindstack takes it when the owner releases it. ${KEEP_CONTENTS}`,
  };
}
