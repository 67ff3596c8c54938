export const NAME = "kindstack";

/** The namespace that manifests are for where none is configured. */
export const DEFAULT_NAMESPACE = "kindstack-system";

/** The name of what is outside of the operator's namespace: another installation's is another one. */
export function nameOutside(namespace: string, name: string): string {
  return namespace === DEFAULT_NAMESPACE ? name : `${name}.${namespace}`;
}

/** The selector of the operator's Pods; it must never change. */
export const SELECTOR = { "app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "operator" } as const;

/** On everything that is installed. */
export const LABELS = { "app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": NAME } as const;
