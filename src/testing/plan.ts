import { isDeepStrictEqual } from "node:util";
import { providersOf } from "../../providers/index";
import { PROVIDER_PROPERTY } from "../../providers/resource-options";
import type { KindObject } from "../../stacks/contract/index";
import { changedPaths } from "../plan/fields";
import { type Programmed, type Registered, registrationsOf, type TestContext } from "./registered";

/** What an update would do with one resource. */
export interface PlannedChange {
  operation: "create" | "update" | "replace" | "delete";
  name: string;
  /** Paths of the inputs that differ, such as `manifest.data.text`; empty for a creation or deletion. */
  inputs: string[];
}

/**
 * What the update from one object to another would do, as the resources' own providers decide it; those of a kind's own need
 * the kind. Runs without an engine, and takes nothing to have drifted. A provider that asks the real system for a decision
 * needs it here too: a row asks the database whether another name is another table.
 *
 * @param before `undefined` for the object's first update
 * @param after `undefined` for its deletion
 * @param context see {@link registeredBy}
 */
export async function planBetween<Spec, Status>(
  program: Programmed<Spec, Status>,
  before: KindObject<Spec, Status> | undefined,
  after: KindObject<Spec, Status> | undefined,
  context: TestContext = {},
): Promise<PlannedChange[]> {
  const olds = before === undefined ? [] : await registrationsOf(program, before, context);
  const news = after === undefined ? [] : await registrationsOf(program, after, context);
  const providers = providersOf(typeof program === "function" ? [] : [program]);
  const plan: PlannedChange[] = [];
  for (const registration of news) {
    const old = olds.find((one) => isSame(one, registration));
    if (old === undefined) plan.push({ operation: "create", name: registration.name, inputs: [] });
    else plan.push(...(await changeOf(old, registration, providers)));
  }
  const gone = olds.filter((old) => !news.some((registration) => isSame(registration, old)));
  return [...plan, ...gone.map(({ name }) => ({ operation: "delete" as const, name, inputs: [] }))];
}

type Registration = Registered<Record<string, unknown>>;

function isSame(one: Registration, other: Registration): boolean {
  return one.type === other.type && one.name === other.name;
}

async function changeOf(
  old: Registration,
  { name, inputs }: Registration,
  providers: ReturnType<typeof providersOf>,
): Promise<PlannedChange[]> {
  const provider = providers.get(inputs[PROVIDER_PROPERTY] as string);
  const diff = (await provider?.diff(name, old.inputs, inputs)) ?? {
    changes: !isDeepStrictEqual(old.inputs, inputs),
  };
  if (!diff.changes) return [];
  const operation = (diff.replaces ?? []).length > 0 ? "replace" : "update";
  return [{ operation, name, inputs: changedPaths(old.inputs, inputs) }];
}
