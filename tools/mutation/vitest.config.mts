import { defineConfig } from "vitest/config";

/** The tests that have to notice a change of what `stryker.json` mutates. */
const include = ["decide", "gate", "reconcile/*"].map((name) => `test/controller/${name}.test.ts`);

export default defineConfig({
  test: { include: [...include, "test/plan/*.test.ts"], isolate: false, testTimeout: 60_000 },
});
