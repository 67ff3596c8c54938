import { comparePreviews } from "./truth-cases";

comparePreviews({ updates: 40, deletions: 15, files: { cases: 12, seeds: [47] }, seed: 47 });
