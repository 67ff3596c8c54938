import { TerminalError } from "../../providers/errors";
import { chosenWords, requireKinds } from "../catalog";
import { type AnyKind, kindName } from "../contract/kind";
import type { Configuration } from "./configuration";

/**
 * Loads the kinds of an installation. In the configuration that is returned, folders and packages have become the names of
 * their kinds: in the operator's image they lie elsewhere.
 *
 * @param words in place of the key `kinds`
 * @throws TerminalError `Misconfigured` for a kind that does not exist or cannot be loaded
 */
export function withLoadedKinds(
  configuration: Configuration,
  { words, directory }: { words?: readonly string[] | undefined; directory?: string } = {},
): { configuration: Configuration; kinds: readonly AnyKind[] } {
  const chosen = chosenWords(words ?? configuration.kinds);
  try {
    const kinds = requireKinds(chosen, directory === undefined ? {} : { directory });
    return { configuration: { ...configuration, kinds: chosen.length > 0 ? kinds.map(kindName) : [] }, kinds };
  } catch (error) {
    if (error instanceof RangeError) throw new TerminalError("Misconfigured", `kindstack:kinds: ${error.message}`);
    throw error;
  }
}
