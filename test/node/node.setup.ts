import type { TestProject } from "vitest/node";
import { type NodeCluster, type NodeInput, startNode, stopNode } from "./node";

declare module "vitest" {
  interface ProvidedContext {
    node: NodeCluster;
  }
}

/** Brings up the node, in the namespaces that main.ts has made; the end of those takes it down. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.KINDSTACK_NODE;
  if (given === undefined) throw new Error("these tests need namespaces of their own: npm run test:node");
  const input = JSON.parse(given) as NodeInput & { family: "ipv4" | "ipv6" };
  const started = performance.now();
  project.provide("node", await startNode(input, input.family));
  console.log(`the node is Ready after ${Math.round((performance.now() - started) / 1000)} s`);
  return () => stopNode(input);
}
