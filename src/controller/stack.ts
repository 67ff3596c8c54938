import { failureOf, TerminalError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import { STATE_MISSING_ANNOTATION } from "../../stacks/contract/annotations";
import { adoptsAfterCrash } from "../../stacks/contract/kind";
import { type KindObject, type ReferenceRecord, stackName } from "../../stacks/contract/object";
import { metadataDigest, observingMetadata, referenceRecords } from "../../stacks/contract/references";
import type { StackObject, UpOptions, UpResult } from "../automation/engine";
import type { StackResource } from "../automation/event-log";
import { type Program, programOf } from "../automation/program";
import { planDestroy, planUpdate, type StackPlan } from "../plan/plan";
import { type ProgramInputs, programContext, readInputs, type View } from "../plan/view";
import type { Step } from "./context";
import type { Pass } from "./gate";
import { ownedOf, recordedIds } from "./kind-cache";
import { adoptsPlugins, objectForDestroy, objectForUpdate, STATE_MISSING } from "./missing-state";
import { type Viewed, viewOf } from "./operator-view";
import { outputFields } from "./output-fields";
import { describeApproval } from "./plan-decision";
import { logOf } from "./work";

type StackStep = Viewed & Step<"facts" | "signal" | "logger", "engine">;

/** One object's stack in one reconcile: what is planned of it and what is done to it, for the same object and in the same view. */
export class ObjectStack {
  readonly #view: View;

  constructor(private readonly step: StackStep) {
    this.#view = viewOf(step);
  }

  /** What the object's program depends on. @throws see {@link readInputs} */
  inputs(parsed: KindObject): Promise<ProgramInputs> {
    return readInputs(this.#view, this.step.context.kind, parsed);
  }

  /** The object's program with what it may know, from the object as it is when its update begins. */
  program(parsed: KindObject, inputs: ProgramInputs): (current: LiveObject) => Program {
    const { context, object, state, logger } = this.step;
    const { kind } = context;
    return (current) => {
      const known = programContext(kind, object, inputs, recordedIds(current));
      const told = { ...known, cached: ownedOf(this.step), log: logOf(logger, "program") };
      let references: ReferenceRecord[] = [];
      const observed = observingMetadata(parsed, () => {
        state.reads = { references, metadata: metadataDigest(object.metadata) };
      });
      const program = programOf(kind, observed, told);
      const noting =
        <Given extends unknown[]>(work: (...given: Given) => void | Promise<void>) =>
        async (...given: Given) => {
          references = await referenceRecords(kind, parsed, inputs.referenced);
          state.reads = { references };
          try {
            await work(...given);
          } catch (error) {
            if (failureOf(error).errorClass === "bug") logger.error({ err: error }, "the kind's program failed");
            throw error;
          }
        };
      return Object.assign(noting(program), program.runInSdk && { runInSdk: noting(program.runInSdk) });
    };
  }

  /** @param binds see {@link PlanRequest} */
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
    options: Pick<UpOptions, "refresh" | "onDeclared">,
  ): Promise<UpResult> {
    const { context, signal } = this.step;
    const { kind, engine } = context;
    await this.#refusePluginsCreations(program);
    // What an update that is cut off has made and not saved may need another approval; what a destroy has deleted does not.
    const savesOnce = adoptsAfterCrash(kind) && approval === undefined;
    const { sdkRuntime } = kind.capabilities;
    const { refresh = false, onDeclared } = options;
    const told = kind.capabilities.outputs && { outputs: this.#outputs };
    return engine.up(this.#name, program, {
      ...told,
      ...{ object: objectForUpdate(this.step), sdkRuntime, savesOnce, onDeclared, signal },
      ...{ refresh: refresh || bound !== undefined, plan: bound?.plan, observed: bound?.observed },
      message: approval && `approved ${describeApproval(approval)}`,
    });
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
    const { context, object, signal } = this.step;
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
