import type { Manifest } from "../../providers/kubernetes/client";
import { AUTHOR_ANNOTATION, IGNORE_FIELDS_ANNOTATION } from "./annotations";
import { type AnyKind, kindName } from "./kind";
import { APPROVE_RIGHT, hasRight } from "./plan-policy";
import { installedMutation, installedPolicy } from "./validating-policy";

/*
 * Where the author of a change may not approve it, the API server writes who that is: on the object, by its own knowledge of the
 * user. It names all who changed the object since it was last in sync: the change that waits is of all of them.
 */

/** Between the names of users, which have none. */
const SEPARATOR = "\n";

/** Users who have changed an object, as its annotation names them; `undefined` where none has been recorded. */
export function recordedAuthors({ metadata }: Pick<Manifest, "metadata">): readonly string[] | undefined {
  const recorded = metadata.annotations?.[AUTHOR_ANNOTATION] ?? "";
  return recorded === "" ? undefined : recorded.split(SEPARATOR);
}

/** Whether a user is known to be none of the authors of a change; `undefined` for a change that all may approve. */
export function mayApprove(authors: readonly string[] | undefined, user: string): boolean {
  if (authors === undefined) return true;
  // A name with a line break in it looks like several.
  const names = ["", ...authors, ""].join(SEPARATOR);
  return authors.length > 0 && !names.includes(`${SEPARATOR}${user}${SEPARATOR}`);
}

const annotationOf = (object: string, key: string) => `${object}.?metadata.?annotations[?'${key}'].orValue('')`;

const VARIABLES = {
  before: `oldObject == null ? '' : ${annotationOf("oldObject", AUTHOR_ANNOTATION)}`,
  changes:
    "oldObject == null || object.?spec != oldObject.?spec || " +
    `${annotationOf("object", IGNORE_FIELDS_ANNOTATION)} != ${annotationOf("oldObject", IGNORE_FIELDS_ANNOTATION)}`,
  // What was applied is no part of the next change.
  isSynced:
    "oldObject == null || oldObject.?status.?conditions.orValue([]).exists(c, c.type == 'Synced' && c.status == 'True' && " +
    "c.?observedGeneration.orValue(0) == oldObject.metadata.generation)",
  user: "request.userInfo.username",
  authors:
    "!variables.changes ? variables.before : " +
    "variables.isSynced || variables.before == '' ? variables.user : " +
    "variables.user in variables.before.split('\\n') ? variables.before : variables.before + '\\n' + variables.user",
};

const PATH = `'/metadata/annotations/' + jsonpatch.escapeKey('${AUTHOR_ANNOTATION}')`;
const PATCH =
  `variables.authors == ${annotationOf("object", AUTHOR_ANNOTATION)} ? [] : ` +
  `variables.authors == '' ? [JSONPatch{op: 'remove', path: ${PATH}}] : ` +
  "!has(object.metadata.annotations) ? [JSONPatch{op: 'add', path: '/metadata/annotations', " +
  `value: {'${AUTHOR_ANNOTATION}': variables.authors}}] : ` +
  `[JSONPatch{op: 'add', path: ${PATH}, value: variables.authors}]`;

/** For each kind, what records who changes an object, and what refuses that anything else is recorded. */
export function authorPolicies(kinds: readonly AnyKind[]): Manifest[] {
  return kinds.flatMap((kind) => {
    const name = `author.${kindName(kind)}`;
    const rule = { apiGroups: [kind.group], scope: kind.scope };
    const about = { rules: [{ ...rule, resources: [kind.plural] }], variables: VARIABLES };
    const isScaled = [kind.capabilities, ...(kind.capabilities.versions ?? [])].some(
      ({ scale }) => scale !== undefined,
    );
    return [
      ...installedMutation(name, about, PATCH),
      ...installedPolicy(name, {
        ...about,
        validations: [
          {
            expression: `variables.authors == ${annotationOf("object", AUTHOR_ANNOTATION)}`,
            messageExpression: `'the annotation ${AUTHOR_ANNOTATION} is written by the API server alone'`,
          },
        ],
      }),
      ...(isScaled ? scalePolicy(kind) : []),
    ];
  });
}

/** What a scale changes leaves no author, as it has no annotations of the object. */
function scalePolicy(kind: AnyKind): Manifest[] {
  const { verb, group, resource } = APPROVE_RIGHT;
  const place = kind.scope === "Namespaced" ? "namespace(request.namespace)." : "";
  return installedPolicy(`scale.${kindName(kind)}`, {
    rules: [
      { apiGroups: [kind.group], resources: [`${kind.plural}/scale`], scope: kind.scope, operations: ["UPDATE"] },
    ],
    variables: {},
    validations: [
      {
        expression: `!${hasRight(APPROVE_RIGHT, place)}`,
        messageExpression: `'who may ${verb} ${resource}.${group} may not scale, as that leaves no author: change the spec of the object'`,
      },
    ],
  });
}
