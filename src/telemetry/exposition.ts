export interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** Reads Prometheus' text format; comments and what is no sample are left out. */
export function parseExposition(text: string): Sample[] {
  return text.split("\n").flatMap((line) => {
    const [, name, labels = "", value] = LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) return [];
    const pairs = [...labels.matchAll(LABEL)].map(([, label = "", text = ""]) => [label, unescaped(text)] as const);
    return [{ name, labels: Object.fromEntries(pairs), value: numberOf(value) }];
  });
}

/**
 * A quantile of a histogram since the process started, as Prometheus' `histogram_quantile` interpolates it; `undefined`
 * when nothing was observed.
 */
export function quantileOf(q: number, samples: readonly Sample[], histogram: string): number | undefined {
  const counts = new Map<number, number>();
  for (const { name, labels, value } of samples) {
    if (name !== `${histogram}_bucket`) continue;
    const bound = numberOf(labels.le ?? "");
    counts.set(bound, (counts.get(bound) ?? 0) + value);
  }
  const buckets = [...counts].sort(([a], [b]) => a - b);
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total === 0) return undefined;
  const index = buckets.findIndex(([, count]) => count >= q * total);
  const [bound = 0, count = 0] = buckets[index] ?? [];
  const [lower, below] = index === 0 ? [0, 0] : (buckets[index - 1] ?? [0, 0]);
  if (bound === Number.POSITIVE_INFINITY) return lower;
  return lower + ((bound - lower) * (q * total - below)) / (count - below);
}

function numberOf(text: string): number {
  return Number(text.replace("Inf", "Infinity"));
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, character: string) => (character === "n" ? "\n" : character));
}
