import { describeReads } from "./reads";

const SEEDS = Number(process.env.READ_SEEDS ?? 10);

describeReads({ seeds: Array.from({ length: SEEDS }, (_, index) => index + 1), faultyMs: 10_000 });
