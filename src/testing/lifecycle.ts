import { isDeepStrictEqual } from "node:util";
import { standardError } from "../../providers/log";
import type { DynamicProvider, Properties, ProviderContext } from "../../providers/provider";
import { changedValues } from "../plan/fields";

/**
 * Takes one resource through its life, as an engine would, with the provider's real system. The steps are create, another
 * create as after a crash, diff, read, update, delete, another delete, create and release. The released resource stays. Where
 * the provider has `observe`, it is asked between the steps. What writes is called as by the operator, and what is repeated as by
 * `pulumi up`, without a context.
 *
 * @param inputs the inputs that a program gives
 * @param changed other inputs of the same resource, to be applied without a replacement
 * @throws Error naming the step whose result an engine could not use
 */
export async function checkLifecycle<Inputs extends object, Outputs extends object>(
  provider: DynamicProvider<Inputs, Outputs>,
  inputs: Inputs,
  changed: Inputs,
): Promise<void> {
  const [first, second] = [await checked(provider, inputs), await checked(provider, changed)];

  const unchecked: string[] = [];
  /** Makes a call as the operator does, and notes whether it has checked the fence. */
  const told = async <T>(step: string, call: (context: ProviderContext) => Promise<T>): Promise<T> => {
    let isChecked = false;
    const check = () => {
      isChecked = true;
    };
    const { signal } = new AbortController();
    const log = standardError("provider");
    const progress = (message: string) => log.info("progress", { message });
    const result = await call({ fence: { check, signal }, signal, log, progress });
    if (!isChecked) unchecked.push(step);
    return result;
  };

  const { id, outs } = await told("create", (context) => provider.create(first, context));
  await expectSettled(provider, "create", id, outs, first);
  if (provider.identify?.(first) !== provider.identify?.(outs as Partial<Inputs>)) {
    fail("identify", "says something else of the outputs than of the inputs");
  }
  await expectObserved(provider, "create", "nothing", first, undefined);
  const again = await provider.create(first);
  if (again.id !== id) fail("a second create", `has the id ${again.id}, not ${id}`);
  await expectSettled(provider, "a second create", id, again.outs, first);

  const diff = await provider.diff(id, again.outs, second);
  if (!diff.changes) fail("diff", "shows no change of the changed inputs");
  if ((diff.replaces ?? []).length > 0) fail("diff", `replaces for ${diff.replaces?.join(", ")}`);
  await expectObserved(provider, "a second create", "something", second, again.outs);
  const { outs: updated } = await told("update", (context) => provider.update(id, again.outs, second, context));
  await expectSettled(provider, "update", id, updated, second);
  await expectObserved(provider, "update", "nothing", second, again.outs);

  await expectObserved(provider, "update", "something", undefined, updated);
  await told("delete", (context) => provider.delete(id, updated, context));
  if ((await provider.read(id, updated)).id !== undefined) fail("delete", "leaves the resource");
  await expectObserved(provider, "delete", "nothing", undefined, updated);
  await provider.delete(id, updated); // after a crash, or when someone else has deleted it

  const last = await provider.create(first);
  await provider.release(last.id, last.outs);
  if ((await provider.read(last.id, last.outs)).id === undefined) fail("release", "deletes the resource");
  await provider.release(last.id, last.outs);
  if (unchecked.length > 0)
    fail(unchecked.join(", "), "never calls context?.fence.check(), which belongs before each write");
}

async function checked<Inputs extends object>(provider: Pick<DynamicProvider, "check">, inputs: Inputs) {
  const { inputs: checked, failures } = await provider.check({}, inputs as Properties);
  for (const { property, reason } of failures) fail("check", `refuses ${property}: ${reason}`);
  return checked as Inputs;
}

/** What was written must be what is read, and no change of it be left. */
async function expectSettled<Inputs extends object, Outputs extends object>(
  provider: DynamicProvider<Inputs, Outputs>,
  step: string,
  id: string,
  outs: Outputs,
  inputs: Inputs,
): Promise<void> {
  if ((await provider.diff(id, outs, inputs)).changes) fail(step, "is followed by a diff with a change");
  const { id: found, props } = await provider.read(id, outs);
  if (found === undefined) fail(step, "is followed by a read that finds nothing");
  if (!isDeepStrictEqual(props, outs)) {
    const differences = changedValues(outs, props).map(
      ({ path, before, after }) => `${path} is ${JSON.stringify(after)}, not ${JSON.stringify(before)}`,
    );
    fail(step, `is followed by a read that differs:\n  ${differences.join("\n  ")}`);
  }
}

/**
 * What the next write would overwrite, which is nothing where it was done already: an update that a crash has cut off continues
 * under the same plan.
 */
async function expectObserved<Inputs extends object, Outputs extends object>(
  provider: DynamicProvider<Inputs, Outputs>,
  step: string,
  expected: "nothing" | "something",
  inputs: Inputs | undefined,
  outs: Outputs | undefined,
): Promise<void> {
  if (provider.observe === undefined) return;
  const [live, again] = [await provider.observe(inputs, outs), await provider.observe(inputs, outs)];
  const found = live === null || live === undefined ? "nothing" : "something";
  if (found !== expected) fail(step, `is followed by an observe that tells of ${found}, not of ${expected}`);
  if (!isDeepStrictEqual(live, again)) fail(step, "is followed by two calls of observe that differ");
}

function fail(step: string, problem: string): never {
  throw new Error(`${step} ${problem}`);
}
