import type { Manifest } from "../../providers/kubernetes/client";
import { shortened } from "../../providers/spelling";
import { type AnyKind, kindName } from "./kind";
import { MODE_ANNOTATION, MODE_SPELLING, MODES } from "./mode";
import { APPROVE_RIGHT, hasRight } from "./plan-policy";
import { installedPolicy, type ResourceRule } from "./validating-policy";

const NO_MODE = `'${MODES[0]}'`;
/** Of an object that is created, nothing was set before. */
const modeIn = (object: string) =>
  `(${object} == null ? ${NO_MODE} : ${object}.?metadata.?annotations[?'${MODE_ANNOTATION}'].orValue(${NO_MODE}))`;
/** The place of a mode in {@link MODES}; what is no mode pauses an object, and so is stricter than all. */
const strictnessOf = (text: string) =>
  [...MODES.map((mode, place) => `${MODE_SPELLING.spells(text, [mode])} ? ${place}`), MODES.length].join(" : ");

/** For each kind, and for namespaces, what refuses that a mode is loosened by those who may not. They come with the CRDs. */
export function modePolicies(kinds: readonly AnyKind[]): Manifest[] {
  return [
    ...kinds.flatMap((kind) => {
      const rule = { apiGroups: [kind.group], resources: [kind.plural], scope: kind.scope };
      const namespace = kind.scope === "Namespaced" ? "object.metadata.namespace" : undefined;
      return modePolicy(`mode.${kindName(kind)}`, rule, namespace);
    }),
    // Metadata of a namespace can be written by its subresources as well.
    ...modePolicy(
      "mode.namespaces.kindstack.dev",
      { apiGroups: [""], resources: ["namespaces", "namespaces/status", "namespaces/finalize"], scope: "Cluster" },
      "object.metadata.name",
    ),
  ];
}

/** What is set must be a mode. To loosen one takes the right to approve, in the object's namespace, or in all for what has none. */
function modePolicy(name: string, rule: ResourceRule, namespace: string | undefined): Manifest[] {
  const { verb, group, resource } = APPROVE_RIGHT;
  const place = namespace === undefined ? "" : `namespace(${namespace}).`;
  const where = namespace === undefined ? "'cluster-wide'" : `'in the namespace ' + ${namespace}`;
  return installedPolicy(name, {
    rules: [rule],
    matchConditions: [{ name: "mode-changes", expression: `${modeIn("object")} != ${modeIn("oldObject")}` }],
    variables: {
      before: modeIn("oldObject"),
      after: modeIn("object"),
      strictnessBefore: strictnessOf("variables.before"),
      strictnessAfter: strictnessOf("variables.after"),
    },
    validations: [
      {
        expression: `variables.strictnessAfter < ${MODES.length}`,
        messageExpression: `'annotation ${MODE_ANNOTATION}: ' + ${MODE_SPELLING.problemOf("variables.after")}`,
        reason: "Invalid",
      },
      {
        expression: `variables.strictnessAfter >= variables.strictnessBefore || ${hasRight(APPROVE_RIGHT, place)}`,
        messageExpression:
          `'loosening ${MODE_ANNOTATION} from ' + ${shortened("variables.before")} + ' to ' + variables.after + ` +
          `' takes the right to ${verb} ${resource}.${group} ' + ${where}`,
      },
    ],
  });
}
