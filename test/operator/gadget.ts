import Type from "typebox";

/** Of a kind that no operator serves but the test's own. */
export const GADGET = {
  group: "test.kindstack.dev",
  version: "v1",
  kind: "Gadget",
  plural: "gadgets",
  singular: "gadget",
  scope: "Namespaced",
  description: "A kind for tests.",
  status: Type.Object({}),
  columns: [],
  directory: __dirname,
  program: () => {},
  report: () => ({}),
} as const;
