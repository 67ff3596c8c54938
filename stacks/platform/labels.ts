/** What the operator and all that belongs to it is called. */
export const NAME = "kindstack";

/** What the operator's Pods are selected by; it never changes. */
export const SELECTOR = { "app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "operator" } as const;

/** On everything that is installed. */
export const LABELS = { "app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": NAME } as const;
