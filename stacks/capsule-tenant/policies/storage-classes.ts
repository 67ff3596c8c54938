import { allowedIn, isAllowed, listVariables, type Restriction } from "./restriction";

/** A claim names its class in a field, or in an annotation that wins over the field; both are looked at. */
const classesOf = (object: string) =>
  `(${object} == null ? [] : [string(${object}.spec.?storageClassName.orValue('')), ` +
  `string(${object}.metadata.?annotations[?'volume.beta.kubernetes.io/storage-class'].orValue(''))].filter(name, name != ''))`;

/** A claim must name an allowed class, and no other. A class that it has had already may stay. */
export const storageClasses: Restriction = {
  appliesTo: ({ spec }) => spec.storageClasses !== undefined,
  rules: [{ apiGroups: [""], resources: ["persistentvolumeclaims"] }],
  variables: {
    ...listVariables("storageClasses"),
    storageClassNames: classesOf("object"),
    storageClassNamesBefore: classesOf("oldObject"),
    refusedStorageClasses: `variables.storageClassNames.filter(name, !(name in variables.storageClassNamesBefore) && !${isAllowed("storageClasses", "name")})`,
  },
  validations: [
    {
      expression:
        "!variables.storageClassesRestricted || size(variables.storageClassNames) > 0 || " +
        "(oldObject != null && size(variables.storageClassNamesBefore) == 0)",
      messageExpression: `'a storage class must be named' + ${allowedIn("storageClasses")}`,
    },
    {
      expression: "!variables.storageClassesRestricted || size(variables.refusedStorageClasses) == 0",
      messageExpression: `'the storage class ' + variables.refusedStorageClasses[0] + ' is not allowed' + ${allowedIn("storageClasses")}`,
    },
  ],
};
