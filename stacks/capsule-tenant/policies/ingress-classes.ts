import { classRestriction } from "./class-restriction";

/** Controllers still obey the annotation. */
export const ingressClasses = classRestriction({
  list: "ingressClasses",
  called: "an ingress class",
  rules: [{ apiGroups: ["networking.k8s.io"], resources: ["ingresses"] }],
  field: "ingressClassName",
  annotation: "kubernetes.io/ingress.class",
});
