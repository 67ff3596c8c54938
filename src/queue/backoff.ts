/**
 * The time to wait after `failures` earlier failures, in ms: doubled for each, capped, then spread by ±20 % so that what
 * failed together does not come back together.
 */
export function exponentialBackoff(failures: number, { baseMs, capMs }: { baseMs: number; capMs: number }): number {
  return Math.round(Math.min(capMs, baseMs * 2 ** failures) * (0.8 + 0.4 * Math.random()));
}
