import { classRestriction } from "./class-restriction";

/** The annotation wins over the field. */
export const storageClasses = classRestriction({
  list: "storageClasses",
  called: "a storage class",
  rules: [{ apiGroups: [""], resources: ["persistentvolumeclaims"] }],
  field: "storageClassName",
  annotation: "volume.beta.kubernetes.io/storage-class",
});
