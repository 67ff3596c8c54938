/**
 * The engine's plan of a preview, opaque, with secrets encrypted as in a state. It is valid in this process, for one reconcile,
 * and is never stored.
 */
export type BindingPlan = object & { readonly [BINDING]: true };
declare const BINDING: unique symbol;
