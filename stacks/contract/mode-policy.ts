import type { Manifest } from "../../providers/kubernetes/client";
import { type AnyKind, kindName } from "./kind";
import { MODE_ANNOTATION, MODES } from "./mode";
import { APPROVE_RIGHT, hasRight } from "./plan-policy";
import { installedPolicy, type ResourceRule } from "./validating-policy";

/** In the order of {@link MODES}; what is no mode pauses an object, and so is as strict as any. */
const STRICTNESS = MODES.map((mode) => `'${mode.toLowerCase()}'`).join(", ");
const NO_MODE = `'${MODES[0]}'`;
const modeIn = (object: string) => `${object}.?metadata.?annotations[?'${MODE_ANNOTATION}'].orValue(${NO_MODE})`;
const strictnessOf = (variable: string) =>
  `variables.${variable} in [${STRICTNESS}] ? [${STRICTNESS}].indexOf(variables.${variable}) : ${MODES.length}`;

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

/** To loosen a mode takes the right to approve, in the object's namespace, or in all for what has none. */
function modePolicy(name: string, rule: ResourceRule, namespace: string | undefined): Manifest[] {
  const { verb, group, resource } = APPROVE_RIGHT;
  const place = namespace === undefined ? "" : `namespace(${namespace}).`;
  const where = namespace === undefined ? "'cluster-wide'" : `'in the namespace ' + ${namespace}`;
  return installedPolicy(name, {
    rules: [{ ...rule, operations: ["UPDATE"] }],
    matchConditions: [{ name: "mode-changes", expression: `${modeIn("object")} != ${modeIn("oldObject")}` }],
    variables: {
      before: `${modeIn("oldObject")}.trim().lowerAscii()`,
      after: `${modeIn("object")}.trim().lowerAscii()`,
      strictnessBefore: strictnessOf("before"),
      strictnessAfter: strictnessOf("after"),
    },
    validations: [
      {
        expression: `variables.strictnessAfter >= variables.strictnessBefore || ${hasRight(APPROVE_RIGHT, place)}`,
        messageExpression:
          `'loosening ${MODE_ANNOTATION} from ' + ${modeIn("oldObject")} + ' to ' + ${modeIn("object")} + ` +
          `' takes the right to ${verb} ${resource}.${group} ' + ${where}`,
      },
    ],
  });
}
