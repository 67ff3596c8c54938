/**
 * Fits `y = factor × x ^ exponent` by least squares of the logarithms. With an exponent of 1 the cost grows as the size does.
 *
 * @param points at least two, of different and positive x and positive y
 */
export function fitPower(points: readonly { x: number; y: number }[]): { exponent: number; factor: number } {
  const logs = points.map(({ x, y }) => ({ x: Math.log(x), y: Math.log(y) }));
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(logs.map((log) => log.x)), mean(logs.map((log) => log.y))];
  const exponent = mean(logs.map((log) => (log.x - x) * (log.y - y))) / mean(logs.map((log) => (log.x - x) ** 2));
  return { exponent, factor: Math.exp(y - exponent * x) };
}
