/*
 * The contract of kinds, `import … from "kindstack"`: all that a kind is written against, besides the providers. What is not
 * exported here, or by another entry of package.json's `exports`, may change at any time.
 */

/** TypeBox, for the schemas of spec and status. */
export { default as Type } from "typebox";
export { type DefinedProvider, DynamicResource, defineProvider } from "../../providers/dynamic";
export { type ErrorClass, PendingError, RetryableError, TerminalError } from "../../providers/errors";
export type { Fence } from "../../providers/fence";
export type { Log } from "../../providers/log";
export { planOutdated } from "../../providers/observation";
export type {
  CheckFailure,
  DiffResult,
  DynamicProvider,
  Hold,
  ProviderContext,
  UpdatedObject,
  WorkContext,
} from "../../providers/provider";
export { defineReason } from "../../providers/reasons";
export type { DynamicResourceOptions } from "../../providers/resource-options";
export type {
  AdmissionRequest,
  AdmissionView,
  AdmissionWatch,
  AdmissionWebhook,
  Decision,
  KindAdmission,
  PatchOperation,
} from "./admission";
export { leavesField } from "./annotations";
export type {
  Capabilities,
  DriftReport,
  ExclusiveClaims,
  ExternalResources,
  KindCondition,
  LiveState,
  Maintenance,
  NamedType,
  NamespaceView,
  OutputsOf,
  PolicyRule,
  ProgramContext,
  Reference,
  ValidationRule,
  Watch,
} from "./capabilities";
export type { Condition } from "./condition";
export { generateName } from "./generate-name";
export { defineKind, type Kind, type KindNames } from "./kind";
export { type CommonStatus, controllerReference, type KindObject, objectId, objectKey } from "./object";
export {
  type Convertible,
  type PrinterColumn,
  type ScalePaths,
  type ServedVersion,
  servedVersion,
} from "./served-version";
export {
  type PolicySpec,
  policyBinding,
  type ResourceRule,
  type Validation,
  validatingPolicy,
} from "./validating-policy";
