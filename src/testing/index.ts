/* `kindstack/testing`: for the tests of a kind, in Vitest, Node's own runner or any other. */

export type { TestCluster, TestClusterOptions } from "./cluster";
export { eventually } from "./eventually";
export { checkLifecycle } from "./lifecycle";
export { objectOf } from "./object";
export { type PlannedChange, planBetween } from "./plan";
export { type Programmed, type Registered, registeredBy, type TestContext } from "./registered";
export { startTestCluster } from "./start-cluster";
