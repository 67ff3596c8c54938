/** A time as the API server's MicroTime, with exactly six decimal places. @param ms since the epoch */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
