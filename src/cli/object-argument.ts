import { type Command, Option } from "commander";
import type { AnyKind } from "../../stacks/contract/kind";
import { stackName } from "../../stacks/contract/object";
import { kinds } from "../../stacks/index";
import { findKind } from "../preview/kind-name";

/** An object that was named on the command line. */
export interface NamedObject {
  kind: AnyKind;
  name: string;
  /** Absent for kinds without namespaces. */
  namespace?: string;
  /** The name of its stack. */
  stack: string;
}

/** For a command's `<kind>`. */
export const KIND_HELP = "such as Tenant, tenant, tenants or tenants.multitenancy.codereliant.io";

export function namespaceOption(): Option {
  return new Option("-n, --namespace <namespace>", "of the object (default: the kubeconfig's)");
}

/** The kind of that name; ends the command as wrongly used when there is none or more than one. */
export function kindArgument(command: Command, word: string): AnyKind {
  try {
    return findKind(kinds, word);
  } catch (error) {
    return command.error(`error: ${(error as Error).message}`);
  }
}

export function namedObject(kind: AnyKind, name: string, namespace: string): NamedObject {
  if (kind.scope === "Cluster") return { kind, name, stack: stackName(kind, name) };
  return { kind, name, namespace, stack: stackName(kind, `${namespace}/${name}`) };
}
