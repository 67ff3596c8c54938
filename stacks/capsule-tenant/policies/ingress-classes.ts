import { allowedIn, isAllowed, listVariables, type Restriction } from "./restriction";

/** An Ingress names its class in a field, or in an annotation that controllers still obey; both are looked at. */
const classesOf = (object: string) =>
  `(${object} == null ? [] : [string(${object}.spec.?ingressClassName.orValue('')), ` +
  `string(${object}.metadata.?annotations[?'kubernetes.io/ingress.class'].orValue(''))].filter(name, name != ''))`;

/** An Ingress must name an allowed class, and no other. A class that it has had already may stay. */
export const ingressClasses: Restriction = {
  appliesTo: ({ spec }) => spec.ingressClasses !== undefined,
  rules: [{ apiGroups: ["networking.k8s.io"], resources: ["ingresses"] }],
  variables: {
    ...listVariables("ingressClasses"),
    ingressClassNames: classesOf("object"),
    ingressClassNamesBefore: classesOf("oldObject"),
    refusedIngressClasses: `variables.ingressClassNames.filter(name, !(name in variables.ingressClassNamesBefore) && !${isAllowed("ingressClasses", "name")})`,
  },
  validations: [
    {
      expression:
        "!variables.ingressClassesRestricted || size(variables.ingressClassNames) > 0 || " +
        "(oldObject != null && size(variables.ingressClassNamesBefore) == 0)",
      messageExpression: `'an ingress class must be named' + ${allowedIn("ingressClasses")}`,
    },
    {
      expression: "!variables.ingressClassesRestricted || size(variables.refusedIngressClasses) == 0",
      messageExpression: `'the ingress class ' + variables.refusedIngressClasses[0] + ' is not allowed' + ${allowedIn("ingressClasses")}`,
    },
  ],
};
