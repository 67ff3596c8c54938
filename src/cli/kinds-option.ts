import { type Command, InvalidArgumentError, Option } from "commander";
import { listItems } from "../../providers/list-items";
import type { AnyKind } from "../../stacks/contract/kind";
import { findKind } from "../../stacks/contract/kind-name";
import { describeProblem, type LoadedKinds, loadKinds, requireKinds } from "../../stacks/kinds/catalog";
import { visibleLines } from "../text/plain-text";
import { orWrongUsage } from "./parse-options";

export interface KindsOption {
  kinds?: LoadedKinds;
}

export const KINDS_FLAG = "--kinds <kinds>";

export function kindsDescription(description: string): string {
  return `${description}: names, folders or packages, such as all,./notice (default: KINDSTACK_KINDS, or all built-in ones)`;
}

/** `--kinds tenants.multitenancy,./notice`, which may be repeated. */
export function kindsOption(description: string): Option {
  return new Option(KINDS_FLAG, kindsDescription(description)).argParser(
    (text, previous?: LoadedKinds): LoadedKinds => {
      try {
        return loadKinds([...(previous?.words ?? []), ...listItems(text)]);
      } catch (error) {
        throw new InvalidArgumentError(`${(error as Error).message}.`);
      }
    },
  );
}

/** The chosen kinds, for a command that needs all of them. @throws TerminalError naming those that cannot be loaded */
export function allKinds({ kinds: chosen }: KindsOption): readonly AnyKind[] {
  return requireKinds(chosen ?? loadKinds());
}

/** The chosen kinds, for a command that serves them. What cannot be loaded is reported, and the others are served. */
export function servedKinds({ kinds, problems }: LoadedKinds, report: (name: string, reason: string) => void) {
  for (const { name, message } of problems) report(visibleLines(name), visibleLines(message));
  if (kinds.length === 0) throw new Error(`no kind can be served: ${problems.map(describeProblem).join("\n")}`);
  return kinds;
}

/** For a command's `<kind>`. */
export const KIND_HELP = "such as Tenant, tenant, tenants or tenants.multitenancy.codereliant.io";

/** The chosen kinds; ends the command as wrongly used when none of them, or more than one, has that name. */
export function kindsWith(command: Command, options: KindsOption, word: string): readonly AnyKind[] {
  const kinds = allKinds(options);
  orWrongUsage(command, () => findKind(kinds, word));
  return kinds;
}
