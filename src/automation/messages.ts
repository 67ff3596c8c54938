/**
 * What Pulumi tells in words alone, where neither its types nor its codes do. Each is tested against Pulumi's own words
 * (`messages.integration.test.ts`). Those that the engine's process knows are in `tools/engine/messages.go`.
 */

/** Of the SDK for Node.js. */
export const SDK = {
  /** What it makes of an answer that says that a resource failed or was skipped, until 3.26x; the engine has told why. */
  notMade: /(^|: )resource .+ failed to register$/,
  /** The engine refuses a registration, such as for a missing plugin. */
  refused: /^failed to register new resource /,
} as const satisfies Record<string, RegExp>;

/** Of the engine. */
export const ENGINE = {
  noPlugin: /no resource (?<plugin>plugin '[^']+')/,
  /** A protected resource would be deleted or replaced; advice follows that is not for the operator's state. */
  isProtected: /^(?<told>.*resource "(?<urn>urn:pulumi:[^"]+)".*)To unprotect the resource, /s,
} as const satisfies Record<string, RegExp>;
