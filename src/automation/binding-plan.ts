/**
 * What a preview told, in the engine's own form, secrets encrypted as in a state. It is for the process that asked for it, and
 * for one reconcile: it is neither stored nor looked into.
 */
export type BindingPlan = object & { readonly [BINDING]: true };
declare const BINDING: unique symbol;
