import { PRIORITY_CLASSES_ANNOTATION, PRIORITY_CLASSES_REGEX_ANNOTATION } from "../labels";
import { allowedIn, hasAnnotation, isAllowed, listVariables, type Restriction } from "./restriction";

const ANNOTATIONS = { allowed: PRIORITY_CLASSES_ANNOTATION, regex: PRIORITY_CLASSES_REGEX_ANNOTATION };

/**
 * A Pod has no priority class, or an allowed one. Where the cluster has a default class, the API server has set it by
 * then, so that it must be allowed by name. A Pod's class never changes.
 */
export const priorityClasses: Restriction = {
  appliesTo: (tenant) =>
    tenant.spec.priorityClasses !== undefined || hasAnnotation(tenant, ANNOTATIONS.allowed, ANNOTATIONS.regex),
  rules: [{ apiGroups: [""], resources: ["pods"], operations: ["CREATE"] }],
  variables: {
    ...listVariables("priorityClasses", ANNOTATIONS),
    priorityClass: "object.spec.?priorityClassName.orValue('')",
  },
  validations: [
    {
      expression: `!variables.priorityClassesRestricted || request.operation != 'CREATE' || variables.priorityClass == '' || ${isAllowed("priorityClasses", "variables.priorityClass")}`,
      messageExpression: `'the priority class ' + variables.priorityClass + ' is not allowed' + ${allowedIn("priorityClasses")}`,
    },
  ],
};
