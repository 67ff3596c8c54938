import { withParent } from "../../providers/dynamic";
import { type AnyKind, findsWhatWasCutOff } from "../../stacks/contract/kind";
import { componentUrn, isObjectComponent, objectComponent } from "../../stacks/contract/shared-stack";
import { PROJECT } from "../automation/backend";
import type { StackEngine, UpdateOptions, UpdateResult } from "../automation/engine";
import type { StackResource } from "../automation/event-log";
import type { UpdateFailure } from "../automation/failures";
import type { Program } from "../automation/language-server";
import { isScaffolding, keyOf, nameOf, withBelow } from "../automation/urn";

/** An object to update, as a component of a shared stack. */
export interface Member {
  /** `namespace/name` */
  key: string;
  program: Program;
}

type SharedEngine = Pick<StackEngine, "up" | "destroy" | "recorded" | "forget">;
type Options = Pick<UpdateOptions, "refresh" | "signal">;

/**
 * Runs the programs of several objects of one stack as one update in which nothing else takes part, and says of each
 * object what came of it. One that fails does not keep the others from succeeding.
 *
 * @param observe told of every update that ran
 */
export async function updateMembers(
  engine: SharedEngine,
  kind: AnyKind,
  stack: string,
  members: readonly Member[],
  { refresh = false, signal }: Options,
  observe: (result: UpdateResult) => void,
): Promise<Map<string, UpdateResult>> {
  const recorded = refresh ? ((await engine.recorded(stack, signal)) ?? []) : [];
  const urnOf = ({ key }: Pick<Member, "key">) => componentUrn(kind, PROJECT, stack, key);
  // Of what the stack does not have there is nothing to be refreshed, and the engine refuses to.
  const known = new Set(refresh ? recorded : members.map(urnOf));
  const isKnown = (member: Member) => known.has(urnOf(member));
  const unknown = members.filter((member) => !isKnown(member));
  const results =
    unknown.length === 0
      ? new Map<string, UpdateResult>()
      : await updateMembers(engine, kind, stack, unknown, { signal }, observe);
  let left = members.filter(isKnown);
  while (left.length > 0) {
    const taking = left;
    let thrower: string | undefined;
    const program = async () => {
      for (const { key, program } of taking) {
        // To register only a part of an object would delete the rest of it, so an error ends the program for all.
        thrower = key;
        await withParent(objectComponent(kind, key), program);
      }
      thrower = undefined;
    };
    const keys = taking.map(({ key }) => key);
    const targets = withBelow(taking.map(urnOf), recorded.filter(isPartOfAny(keys)));
    const options = { refresh, signal, savesOnce: findsWhatWasCutOff(kind), targets };
    const result = await engine.up(stack, program, options);
    observe(result);
    const parts = splitResult(result, keys, thrower);
    for (const [key, part] of parts) results.set(key, part);
    left = taking.filter(({ key }) => !parts.has(key));
  }
  return results;
}

/**
 * Deletes what several objects have in a stack, and the stack when nothing else is in it. What is not there is deleted.
 *
 * @param options with `release`, their resources are kept, unmanaged; with `forget`, they are not touched at all
 */
export async function destroyMembers(
  engine: SharedEngine,
  kind: AnyKind,
  stack: string,
  keys: readonly string[],
  { signal, release = false, forget = false }: Options & { release?: boolean; forget?: boolean },
  observe: (result: UpdateResult) => void,
): Promise<Map<string, UpdateResult>> {
  const recorded = await engine.recorded(stack, signal);
  const isTheirs = isPartOfAny(keys);
  const present = (recorded ?? []).filter(isTheirs);
  const isLast = (recorded ?? []).every((urn) => isTheirs(urn) || isScaffolding(urn));
  // A destroy that was cut off after it had removed the state has left the rest of the stack.
  if (recorded === undefined) await engine.forget(stack, signal);
  if (recorded === undefined || (present.length === 0 && !isLast)) {
    return new Map(keys.map((key) => [key, partialResult("destroy", "succeeded")]));
  }
  const components = new Set(keys.map((key) => componentUrn(kind, PROJECT, stack, key)));
  const found = new Set(present.filter((urn) => components.has(urn)).map(keyOf));
  // The component of an object that another version of its kind has made has another URN: then all of it is named.
  const targets = present.filter((urn) => components.has(urn) || !found.has(keyOf(urn)));
  const options = { release, forget, signal, savesOnce: findsWhatWasCutOff(kind) };
  const result = await engine.destroy(stack, { ...options, targets: isLast ? undefined : targets });
  observe(result);
  const parts = splitResult(result, keys, undefined);
  // What was not reached because of another's failure is tried again with that one's next try.
  return new Map(keys.map((key) => [key, parts.get(key) ?? partOfResult(result, [], [], result.failures)]));
}

/**
 * The result of an update for each object that took part; without objects whose result is unknown because another's
 * failure ended it before its end.
 *
 * @param thrower whose program threw, if one did
 */
export function splitResult(
  result: UpdateResult,
  keys: readonly string[],
  thrower: string | undefined,
): Map<string, UpdateResult> {
  const resources = groupBy(result.resources, ({ urn }) => keyOf(urn));
  const deleted = groupBy(result.deleted, ({ urn }) => keyOf(urn));
  const own = groupBy(result.failures, ({ urn }) => (urn === undefined ? thrower : keyOf(urn)));
  const unowned = own.get(undefined) ?? [];
  const blamed = keys.some((key) => own.has(key));
  const parts = new Map<string, UpdateResult>();
  for (const key of keys) {
    const failures = own.get(key) ?? [];
    const isDone = result.outcome === "succeeded" || (result.restDone === true && unowned.length === 0);
    if (failures.length === 0 && !isDone && blamed && result.outcome !== "interrupted") continue;
    const all = failures.length > 0 || isDone ? failures : result.failures;
    parts.set(key, partOfResult(result, resources.get(key) ?? [], deleted.get(key) ?? [], all, isDone));
  }
  return parts;
}

function partOfResult(
  { operation, outcome, durationMs }: UpdateResult,
  resources: StackResource[],
  deleted: StackResource[],
  failures: UpdateFailure[],
  isDone = false,
): UpdateResult {
  const changes: UpdateResult["changes"] = {};
  const own = resources.filter(isNoComponent);
  const gone = deleted.filter(isNoComponent);
  for (const { operation: step } of [...own, ...gone]) {
    if (step !== "same" && step !== "refresh") changes[step] = (changes[step] ?? 0) + 1;
  }
  const ended = failures.length > 0 ? "failed" : isDone ? "succeeded" : outcome;
  return { ...partialResult(operation, ended), changes, resources: own, deleted: gone, failures, durationMs };
}

/** The result for an object that needed no update, or whose update did not begin. */
export function partialResult(operation: UpdateResult["operation"], outcome: UpdateResult["outcome"]): UpdateResult {
  return { operation, outcome, changes: {}, resources: [], deleted: [], failures: [], isPartial: true, durationMs: 0 };
}

function groupBy<T, K>(items: readonly T[], groupOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(groupOf(item)) ?? [];
    group.push(item);
    groups.set(groupOf(item), group);
  }
  return groups;
}

function isPartOfAny(keys: readonly string[]): (urn: string) => boolean {
  const wanted = new Set(keys);
  return (urn) => wanted.has(keyOf(urn));
}

/** The keys of the objects in a stack, from the URNs in its state. */
export function membersOf(recorded: readonly string[]): string[] {
  const members = recorded.filter((urn) => {
    const type = urn.split("::")[2] ?? "";
    return isObjectComponent(type) && !type.includes("$"); // what is below a component has its type and a $ before its own
  });
  return members.map(nameOf);
}

function isNoComponent({ type }: StackResource): boolean {
  return !isObjectComponent(type);
}
