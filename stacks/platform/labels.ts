/** The name of the operator and its objects. */
export const NAME = "kindstack";

/** The selector of the operator's Pods; it must never change. */
export const SELECTOR = { "app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "operator" } as const;

/** On everything that is installed. */
export const LABELS = { "app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": NAME } as const;
