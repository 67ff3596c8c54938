import { setMocks } from "@pulumi/pulumi/runtime/mocks";
import { disconnect } from "@pulumi/pulumi/runtime/settings";
import type { ObjectInputs } from "../../providers/kubernetes/object";

/** A resource as a program gives it to the engine. */
export type Registered = ObjectInputs & { name: string };

/** Runs a program without an engine; returns the Kubernetes objects that it registers. */
export async function registeredBy(program: () => void | Promise<void>): Promise<Registered[]> {
  const registered: Registered[] = [];
  await setMocks({
    newResource: ({ name, inputs }) => {
      registered.push({ name, ...(inputs as ObjectInputs) });
      return { id: name, state: inputs };
    },
    call: () => ({}),
  });
  await program();
  await disconnect(); // when all that was registered has arrived
  return registered;
}
