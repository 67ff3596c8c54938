import { defineConfig } from "vitest/config";

/** Faults at every point where they may come: `npm run test:faults`, not a part of `npm test`. */
export default defineConfig({
  test: {
    include: ["test/faults/**/*.test.ts"],
    globalSetup: ["test/cluster.setup.ts"],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    fileParallelism: false,
  },
});
