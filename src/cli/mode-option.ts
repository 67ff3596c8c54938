import { InvalidArgumentError, Option } from "commander";
import { TerminalError } from "../../providers/errors";
import { listItems } from "../../providers/list-items";
import type { AnyKind } from "../../stacks/contract/kind";
import { findKind } from "../../stacks/contract/kind-name";
import { MODE_SPELLING, MODES, type Mode } from "../../stacks/contract/mode";

/** A mode for all kinds, or for one that a person names. */
interface ModeSetting {
  word: string | undefined;
  mode: Mode;
}

export interface ModeOption {
  mode: readonly ModeSetting[];
}

/** `--mode Observe`, `--mode tenants.multitenancy=Observe,podsets=Apply`; may be repeated. */
export function modeOption(): Option {
  return new Option("--mode <modes>", `mode of all kinds, or <kind>=<mode>, such as ${MODES.join(" or ")}`)
    .default([], MODES[0])
    .argParser((text, previous: readonly ModeSetting[] = []) => [...previous, ...listItems(text).map(parseSetting)]);
}

function parseSetting(text: string): ModeSetting {
  const [name = "", word] = text.split("=").reverse();
  const mode = MODE_SPELLING.read(name);
  if (mode === undefined || word === "" || text.split("=").length > 2) {
    throw new InvalidArgumentError(
      `${JSON.stringify(text)} must be a mode, or <kind>=<mode>; modes are ${MODES.join(", ")}.`,
    );
  }
  return { word, mode };
}

/**
 * The mode of each kind: what names the kind, else what is for all.
 *
 * @throws TerminalError `Misconfigured` for a kind that is not among `kinds`
 */
export function modesOf(
  settings: readonly ModeSetting[],
  kinds: readonly AnyKind[],
): (kind: AnyKind) => Mode | undefined {
  const all = settings.findLast(({ word }) => word === undefined)?.mode;
  const named = new Map<AnyKind, Mode>();
  for (const { word, mode } of settings) {
    if (word === undefined) continue;
    try {
      named.set(findKind(kinds, word), mode);
    } catch (error) {
      throw new TerminalError("Misconfigured", `--mode ${word}=${mode}: ${(error as Error).message}`);
    }
  }
  return (kind) => named.get(kind) ?? all;
}
