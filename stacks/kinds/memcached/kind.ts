import { defineKind } from "../../contract/index";
import { DEFAULT_IMAGE, memcachedImage, memcachedProgram } from "./program";
import { memcachedSpec, memcachedStatus } from "./schema";
import { memcachedConditions } from "./status";

export const memcached = defineKind({
  group: "cache.example.com",
  version: "v1alpha1",
  kind: "Memcached",
  plural: "memcacheds",
  singular: "memcached",
  scope: "Namespaced",
  description: "A number of instances of Memcached.",
  spec: memcachedSpec,
  status: memcachedStatus,
  columns: [
    { name: "Size", type: "integer", jsonPath: ".spec.size" },
    { name: "Available", type: "string", jsonPath: '.status.conditions[?(@.type=="Available")].status' },
  ],
  owns: [{ apiVersion: "apps/v1", kind: "Deployment" }],
  directory: __dirname,
  program: memcachedProgram,
  report: () => ({}),
  capabilities: {
    rules: [
      { rule: "size(self.metadata.name) <= 63", message: "the name is a label of the Pods: at most 63 characters" },
    ],
    settings: memcachedImage,
    environment: { MEMCACHED_IMAGE: `the image of Memcacheds (default: ${DEFAULT_IMAGE})` },
    conditions: memcachedConditions,
    conditionTypes: {
      Available: "as many instances as wanted are available",
      Progressing: "the Deployment is being rolled out or removed",
      Degraded: "the last update or the removal failed",
    },
  },
});
