import { comparePreviews } from "./truth-cases";

const seeds = Array.from({ length: 8 }, (_, seed) => seed);
comparePreviews({ updates: 2000, deletions: 500, files: { cases: 125, seeds }, seed: 4747, timeout: 3_600_000 });
