import type { Manifest } from "../../providers/kubernetes/client";
import { spellingOf } from "../../providers/spelling";

/** What the operator may do for an object, for all of a namespace, or for all of a kind. */
export const MODE_ANNOTATION = "kindstack.dev/mode";

/**
 * From the least strict to the strictest. `Apply`: changes are applied. `ProposeDestructive`: what deletes or replaces something
 * becomes a plan that waits for an approval. `Propose`: every change does. `Observe`: nothing is written but the status, which
 * says what would change.
 */
export const MODES = ["Apply", "ProposeDestructive", "Propose", "Observe"] as const;
export type Mode = (typeof MODES)[number];
export const MODE_SPELLING = spellingOf(MODES);

/** The mode that holds where several are set. */
export function strictest(modes: readonly (Mode | undefined)[]): Mode {
  return MODES.findLast((mode) => modes.includes(mode)) ?? "Apply";
}

export function isLooser(mode: Mode, than: Mode): boolean {
  return MODES.indexOf(mode) < MODES.indexOf(than);
}

/** What a namespace's annotation sets for the objects in it, or why it cannot be understood. */
export function modeOfNamespace({ metadata }: Pick<Manifest, "metadata">): { mode?: Mode; problem?: string } {
  const text = metadata.annotations?.[MODE_ANNOTATION];
  if (text === undefined) return {};
  const mode = MODE_SPELLING.read(text);
  if (mode !== undefined) return { mode };
  return { problem: `annotation ${MODE_ANNOTATION} of the namespace ${metadata.name}: ${MODE_SPELLING.problem(text)}` };
}
