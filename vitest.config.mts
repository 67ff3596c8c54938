import { homedir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** What is slow by nature: `npm run test:all` runs it, `npm test` does not. */
const SLOW = "test/**/*.slow.test.ts";
/** The contract of the engines, which are of two versions, with a former version of the SDK: part of `npm run test:all`. */
const FORMER_SDK = { version: "3.260.0", home: join(homedir(), ".cache/kindstack/pulumi-sdk/3.260.0") };
/** What runs on a node: `npm run test:node`. */
const NODE = "test/node/**/*.node.test.ts";
const NEEDS_CONTROL_PLANE = ["test/**/*.integration.test.ts", "test/e2e/**/*.test.ts"];

/**
 * For files that need a control plane: as many run side by side, each on its own. Three leave a sixth of two cores idle,
 * as much of a test's time is waiting. The time-outs end what hangs and say nothing of how long something may take: on a
 * machine that others use, all of it takes up to four times as long.
 */
const WITH_CONTROL_PLANES = {
  globalSetup: ["test/control-planes.setup.ts"],
  setupFiles: ["test/installation-left.setup.ts"],
  hookTimeout: 300_000,
  testTimeout: 300_000,
  isolate: false, // a worker has one control plane, and loads each module once
  maxWorkers: 4,
  expect: { poll: { timeout: 60_000 } },
};

/** What takes over 40 s: begun last, it would end alone. Vitest knows that itself only of what has run here before. */
const LONG =
  /faults|waiting|restart|interruption|refused|operation|install|readme|console|dev\/cluster|pulumi-up|hand-over/;

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => LONG.test(moduleId.slice(import.meta.dirname.length));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/** Each is run by itself: between projects of one run, Vitest gives two workers the same number, and so one control plane. */
export default defineConfig({
  test: {
    env: { FORCE_COLOR: "0" }, // what is compared has no colours, also where Vitest shows its own
    sequence: { sequencer: LongFirst },
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: [...NEEDS_CONTROL_PLANE, SLOW, NODE],
          maxWorkers: 4, // some wait: with two, a fifth of two cores is idle
          isolate: false, // two thirds of the time went to loading the same modules again for each file
          hookTimeout: 60_000,
          testTimeout: 60_000,
          expect: { poll: { timeout: 60_000 } },
        },
      },
      {
        test: {
          ...WITH_CONTROL_PLANES,
          name: "integration",
          include: NEEDS_CONTROL_PLANE,
          exclude: [SLOW],
        },
      },
      {
        test: {
          ...WITH_CONTROL_PLANES,
          name: "slow",
          include: [SLOW],
          maxWorkers: 3, // each keeps two cores busy by itself; with more, Leases of 8 s expire in between
        },
      },
      {
        // With its own classes of messages, which it knows from others'.
        resolve: {
          alias: ["@pulumi/pulumi", "google-protobuf", "@grpc/grpc-js"].map((name) => ({
            find: name,
            replacement: join(FORMER_SDK.home, "node_modules", name),
          })),
        },
        test: {
          name: "former-sdk",
          include: ["test/automation/{contract,versions}.slow.test.ts"],
          globalSetup: ["test/former-sdk.setup.ts"],
          provide: { sdk: FORMER_SDK },
          hookTimeout: 300_000,
          testTimeout: 300_000,
        },
      },
      {
        test: {
          name: "node",
          include: [NODE],
          globalSetup: ["test/node/node.setup.ts"],
          fileParallelism: false, // there is one cluster
          testTimeout: 600_000,
          hookTimeout: 600_000,
          bail: 1, // each test finds what the one before has left
        },
      },
    ],
  },
});
