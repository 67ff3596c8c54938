import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/**/*.integration.test.ts", "test/e2e/**", "test/faults/**"],
        },
      },
      {
        test: {
          name: "integration",
          include: ["test/**/*.integration.test.ts", "test/e2e/**/*.test.ts"],
          globalSetup: ["test/cluster.setup.ts"],
          testTimeout: 60_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
