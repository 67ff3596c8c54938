import { defineKind } from "kindstack";
import { newKindProgram } from "./program";
import { newKindSpec, newKindStatus } from "./schema";
import { newKindReport } from "./status";

export const newKind = defineKind({
  group: "example.com",
  version: "v1alpha1",
  kind: "NewKind",
  plural: "newkinds",
  singular: "newkind",
  scope: "Namespaced",
  description: "A text in a ConfigMap.",
  spec: newKindSpec,
  status: newKindStatus,
  columns: [{ name: "ConfigMap", type: "string", jsonPath: ".status.configMap" }],
  owns: [{ apiVersion: "v1", kind: "ConfigMap" }],
  directory: __dirname,
  program: newKindProgram,
  report: newKindReport,
});
