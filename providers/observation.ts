/**
 * By URN, a digest of what a write of the resource would overwrite in the world, as it was when a preview looked. Resources
 * of providers that cannot tell have none.
 */
export type Observations = ReadonlyMap<string, string>;
