/*
 * The contract of kinds, `import … from "kindstack"`: all that a kind is written against, besides the providers. What is not
 * exported here, or by another entry of package.json's `exports`, may change at any time.
 */

/** TypeBox, for the schemas of spec and status. */
export { default as Type } from "typebox";
export { type DefinedProvider, DynamicResource, defineProvider } from "../../providers/dynamic";
export { type ErrorClass, PendingError, RetryableError, TerminalError } from "../../providers/errors";
export { checkFence } from "../../providers/fence";
export type { CheckFailure, DiffResult, DynamicProvider } from "../../providers/provider";
export type {
  AdmissionRequest,
  AdmissionView,
  AdmissionWatch,
  AdmissionWebhook,
  Decision,
  KindAdmission,
  PatchOperation,
  RequestingUser,
} from "./admission";
export type { Condition } from "./condition";
export {
  type Activity,
  type Capabilities,
  type DriftReport,
  defineKind,
  type ExclusiveClaims,
  type ExternalResources,
  type Kind,
  type KindCondition,
  type KindNames,
  type LiveState,
  type Maintenance,
  type PrinterColumn,
  type ProgramContext,
  type ValidationRule,
  type Watch,
} from "./kind";
export type { NamespaceView } from "./namespace-view";
export { type CommonStatus, controllerReference, type KindObject, objectId, objectKey } from "./object";
export type { PolicyRule } from "./policy-rule";
export { type Convertible, type ServedVersion, servedVersion } from "./served-version";
