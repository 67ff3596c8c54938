import path from "node:path";

const DIST = path.resolve(__dirname, "../../dist");

/** Of kinds that tests write, as with an installed package: the types are those that were compiled. */
export const COMPILER_OPTIONS = {
  strict: true,
  module: "node20",
  target: "es2022",
  skipLibCheck: true,
  types: ["node"],
  paths: {
    kindstack: [path.join(DIST, "stacks/contract/index.d.ts")],
    "kindstack/providers/kubernetes": [path.join(DIST, "providers/kubernetes/index.d.ts")],
  },
};
