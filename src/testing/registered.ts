import { setMocks } from "@pulumi/pulumi/runtime/mocks";
import { disconnect } from "@pulumi/pulumi/runtime/settings";
import { PROVIDER_PROPERTY } from "../../providers/dynamic";
import type { ObjectInputs } from "../../providers/kubernetes/object-inputs";
import type { Kind, KindObject, ProgramContext } from "../../stacks/contract/index";

/** A resource as a program gives it to the engine: its name and its inputs. */
export type Registered = ObjectInputs & { name: string };

/** The owner of all that a program registers, where a test names no other. */
const OWNER = { uid: "uid-of-the-object", description: "the object of this test" };

/**
 * Runs a program without an engine, a cluster or a database.
 *
 * @param object what the program is given; see {@link objectOf}
 * @param context what differs from an object's first update, in which it owns nothing
 * @returns the resources that it registers, in this order
 */
export async function registeredBy<Spec, Status>(
  program: Kind<Spec, Status>["program"],
  object?: KindObject<Spec, Status>,
  context: Partial<ProgramContext> = {},
): Promise<Registered[]> {
  return (await registrationsOf(program, object, context)).map(({ name, inputs }) => {
    const { [PROVIDER_PROPERTY]: _, ...own } = inputs;
    return { name, ...(own as unknown as ObjectInputs) };
  });
}

/** A registration, with what the state holds of its provider among the inputs. */
export interface Registration {
  type: string;
  name: string;
  inputs: Record<string, unknown>;
}

export async function registrationsOf<Spec, Status>(
  program: Kind<Spec, Status>["program"],
  object: KindObject<Spec, Status> | undefined,
  context: Partial<ProgramContext>,
): Promise<Registration[]> {
  const registered: Registration[] = [];
  await setMocks({
    newResource: ({ type, name, inputs }) => {
      registered.push({ type, name, inputs });
      return { id: name, state: inputs };
    },
    call: () => ({}),
  });
  const nothing = { owned: [], recorded: new Set<string>(), watched: [] };
  await program(object as KindObject<Spec, Status>, { owner: OWNER, ...nothing, ...context });
  await disconnect(); // when all that was registered has arrived
  return registered;
}
