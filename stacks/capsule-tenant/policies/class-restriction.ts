import type { ResourceRule } from "./policy";
import { allowedIn, isAllowed, listVariables, type Restriction } from "./restriction";

/** Objects that name a class in a field of their specification, or in an annotation; both are looked at. */
export interface ClassRestriction {
  /** Of the tenant's specification. */
  list: "ingressClasses" | "storageClasses";
  /** In messages, with its article. */
  called: `a ${string}` | `an ${string}`;
  rules: readonly ResourceRule[];
  /** Of the object's specification. */
  field: string;
  annotation: string;
}

/** An object must name an allowed class, and no other. A class that it has had already may stay. */
export function classRestriction({ list, called, rules, field, annotation }: ClassRestriction): Restriction {
  const classesOf = (object: string) =>
    `(${object} == null ? [] : [string(${object}.spec.?${field}.orValue('')), ` +
    `string(${object}.metadata.?annotations[?'${annotation}'].orValue(''))].filter(name, name != ''))`;
  const [singular, capital] = [list.replace(/es$/, ""), `${list.charAt(0).toUpperCase()}${list.slice(1)}`];
  const [names, before, refused] = [`${singular}Names`, `${singular}NamesBefore`, `refused${capital}`];
  return {
    appliesTo: ({ spec }) => spec[list] !== undefined,
    rules,
    variables: {
      ...listVariables(list),
      [names]: classesOf("object"),
      [before]: classesOf("oldObject"),
      [refused]: `variables.${names}.filter(name, !(name in variables.${before}) && !${isAllowed(list, "name")})`,
    },
    validations: [
      {
        expression:
          `!variables.${list}Restricted || size(variables.${names}) > 0 || ` +
          `(oldObject != null && size(variables.${before}) == 0)`,
        messageExpression: `'${called} must be named' + ${allowedIn(list)}`,
      },
      {
        expression: `!variables.${list}Restricted || size(variables.${refused}) == 0`,
        messageExpression: `'the ${called.replace(/^an? /, "")} ' + variables.${refused}[0] + ' is not allowed' + ${allowedIn(list)}`,
      },
    ],
  };
}
