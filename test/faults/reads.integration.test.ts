import { describeReads } from "./reads";

/* One of the sequences of `reads.slow.test.ts`. */
describeReads({ seeds: [20261127], faultyMs: 3_000 });
