import { setMocks } from "@pulumi/pulumi/runtime/mocks";
import { disconnect } from "@pulumi/pulumi/runtime/settings";
import { withoutInternal } from "../../providers/dynamic";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { ObjectInputs } from "../../providers/kubernetes/object-inputs";
import { unsealed } from "../../providers/literal";
import { declaredBy } from "../../providers/registration";
import type { Kind, KindObject, ProgramContext } from "../../stacks/contract/index";
import { runProgram } from "../../stacks/contract/run-program";

/** A resource as a program gives it to the engine. */
export interface Registered<Inputs = ObjectInputs> {
  /** The resource's name in the program. */
  name: string;
  /** Pulumi's type token, such as `pulumi-nodejs:dynamic/kubernetes:ConfigMap`. */
  type: string;
  inputs: Inputs;
}

/** What a program is told in a test, as far as it differs from an object's first update, in which it owns nothing. */
export interface TestContext extends Partial<Omit<ProgramContext, "read">> {
  /** What references of the kind lead to, by their names. */
  referenced?: Readonly<Record<string, object | undefined>>;
  /** Outputs of a resource, besides its inputs; for programs of the SDK's runtime. */
  outputs?(resource: Registered<Record<string, unknown>>): Record<string, unknown>;
}

/** A kind, whose program may only do what the kind says, or a program alone. */
export type Programmed<Spec, Status> = Kind<Spec, Status> | Kind<Spec, Status>["program"];

/** The owner of all that a program registers, where a test names no other. */
const OWNER = { uid: "uid-of-the-object", description: "the object of this test" };

/**
 * Runs a program without an engine, a cluster or a database.
 *
 * @param object what the program is given; see {@link objectOf}
 * @returns the registered resources, in order
 * @throws the program's errors; TerminalError `InvalidProgram` where the kind's definition does not allow a resource
 */
export async function registeredBy<Spec, Status>(
  program: Programmed<Spec, Status>,
  object?: KindObject<Spec, Status>,
  context: TestContext = {},
): Promise<Registered[]> {
  return (await registrationsOf(program, object, context)).map(({ inputs, ...registered }) => ({
    ...registered,
    inputs: withoutInternal(inputs) as unknown as ObjectInputs,
  }));
}

/** The same, with what the state holds of a resource's provider among the inputs. */
export async function registrationsOf<Spec, Status>(
  program: Programmed<Spec, Status>,
  object: KindObject<Spec, Status> | undefined,
  { referenced = {}, outputs, ...different }: TestContext,
): Promise<Registered<Record<string, unknown>>[]> {
  const context = { owner: OWNER, owned: [], recorded: new Set<string>(), watched: [], log: console, ...different };
  const given = object as KindObject<Spec, Status>;
  const found = new Map(Object.entries(referenced)) as Map<string, LiveObject | undefined>;
  if (typeof program !== "function" && !program.capabilities.sdkRuntime) {
    // As the operator runs it: what a plain program cannot have is refused.
    const declared = await declaredBy(() => runProgram(program, given, { ...context, referenced: found }));
    return declared.flatMap(({ name, type, inputs }) =>
      inputs === undefined ? [] : [{ name, type, inputs: unsealed(JSON.parse(JSON.stringify(inputs))) }],
    );
  }
  const registered: Registered<Record<string, unknown>>[] = [];
  await setMocks({
    newResource: ({ type, name, inputs }) => {
      registered.push({ name, type, inputs: unsealed(inputs) });
      return { id: name, state: { ...inputs, ...outputs?.({ name, type, inputs }) } };
    },
    call: () => ({}),
  });
  if (typeof program === "function") {
    await program(given, { ...context, read: <T>(name: string) => referenced[name] as T | undefined });
  } else {
    await runProgram(program, given, { ...context, referenced: found });
  }
  await disconnect(); // when all that was registered has arrived
  return registered;
}
