import { TerminalError } from "../../providers/errors";
import { type AnyKind, kindName } from "../contract/kind";
import { capsuleTenant } from "../kinds/capsule-tenant/kind";
import { type LoadedKinds, loadKinds, requireKinds } from "../kinds/catalog";
import { postgresWriter } from "../kinds/postgres-writer/kind";
import type { Configuration } from "./configuration";

/**
 * Loads the kinds of an installation. In the configuration that is returned, folders and packages have become the names of
 * their kinds: in the operator's image they lie elsewhere.
 */
export function withLoadedKinds(
  configuration: Configuration,
  directory?: string,
): { configuration: Configuration; kinds: readonly AnyKind[] } {
  let loaded: LoadedKinds;
  try {
    loaded = loadKinds(configuration.kinds, directory);
  } catch (error) {
    if (error instanceof RangeError) throw new TerminalError("Misconfigured", `kindstack:kinds: ${error.message}`);
    throw error;
  }
  const kinds = requireKinds(loaded);
  if (configuration.proxy && !kinds.includes(capsuleTenant)) {
    throw new TerminalError("Misconfigured", `kindstack:proxy: true needs ${kindName(capsuleTenant)} among the kinds`);
  }
  return { configuration: { ...configuration, kinds: loaded.words.length > 0 ? kinds.map(kindName) : [] }, kinds };
}

/** An operator that may write every table of a database is nothing that an installation does by default. */
export function requireTables({ postgresTables }: Configuration, kinds: readonly AnyKind[]): void {
  if (postgresTables !== undefined || !kinds.includes(postgresWriter)) return;
  throw new TerminalError(
    "Misconfigured",
    `kindstack:postgresTables: must be set, as ${kindName(postgresWriter)} is among the kinds: name the tables that objects may ` +
      "write, such as students,team-a=app.*; *.* allows all, an empty text none",
  );
}
