import type Type from "typebox";
import type { Manifest } from "../../providers/kubernetes/client";
import { shortened } from "../../providers/spelling";
import { DELETION_POLICY_ANNOTATION } from "./annotations";
import { APPROVAL_TYPE, approvalSpecSchema } from "./approval";
import { authorPolicies } from "./author-policy";
import { AGE_COLUMN, customResourceDefinition, DEFINITION_TYPE, definitionOf } from "./crd";
import { type AnyKind, type KindNames, kindName } from "./kind";
import { MODE_ANNOTATION, MODE_SPELLING, MODES } from "./mode";
import { FINALIZER } from "./object";
import { PLAN_TYPE, planSpecSchema, planStatusSchema } from "./plan";
import { APPROVE_RIGHT, hasRight, PROPOSE_RIGHT, planPolicies } from "./plan-policy";
import type { PrinterColumn } from "./served-version";
import { structuralSchema } from "./structural";
import { installedPolicy, type ResourceRule } from "./validating-policy";

/** Rules that an installation may have or not. */
export interface InstalledRules {
  /** The API server records who changes an object, and the operator heeds no approval by them. */
  authorMayNotApprove?: boolean;
}

/** What is installed for kinds besides the operator, and stays when it goes. */
export function installedDefinitions(kinds: readonly AnyKind[], rules: InstalledRules = {}): Manifest[] {
  return [...kinds.map((kind) => customResourceDefinition(kind)), ...installedPolicies(kinds, rules)];
}

/** All of that but the CRDs of kinds. */
export function installedPolicies(kinds: readonly AnyKind[], { authorMayNotApprove }: InstalledRules): Manifest[] {
  return [
    ...planDefinitions(),
    ...modePolicies(kinds),
    ...finalizerPolicies(kinds),
    ...versionPolicies(kinds),
    ...(authorMayNotApprove ? authorPolicies(kinds) : []),
  ];
}

/**
 * For each kind with several versions, what refuses writes in another version than the stored one while the CRD names no
 * conversion: the API server would store the object as it is, without the fields that the stored version does not have.
 */
function versionPolicies(kinds: readonly AnyKind[]): Manifest[] {
  return kinds.flatMap((kind) => {
    const versions = (kind.capabilities.versions ?? []).map(({ version }) => version);
    if (versions.length === 0) return [];
    const name = `versions.${kindName(kind)}`;
    return installedPolicy(
      name,
      {
        rules: [{ apiGroups: [kind.group], apiVersions: versions, resources: [kind.plural], scope: kind.scope }],
        paramKind: DEFINITION_TYPE,
        variables: {},
        validations: [
          {
            expression: "params.spec.?conversion.?strategy.orValue('None') == 'Webhook'",
            messageExpression: `'no operator converts ${kind.kind} yet: use ${kind.group}/${kind.version}, or start the operator with admission'`,
          },
        ],
      },
      { paramRef: { name: kindName(kind), parameterNotFoundAction: "Deny" } },
    );
  });
}

const hasFinalizer = (object: string) => `'${FINALIZER}' in ${object}.metadata.?finalizers.orValue([])`;

/**
 * For each kind, what refuses that the finalizer is removed, but by the operator and by those who may approve: without it, an
 * object is gone, and no deletion waits for an approval. They come with the CRDs.
 */
function finalizerPolicies(kinds: readonly AnyKind[]): Manifest[] {
  const { verb, group, resource } = APPROVE_RIGHT;
  return kinds.flatMap((kind) => {
    const isNamespaced = kind.scope === "Namespaced";
    const place = isNamespaced ? "namespace(request.namespace)." : "";
    const where = isNamespaced ? "'in the namespace ' + request.namespace" : "'cluster-wide'";
    return installedPolicy(`finalizer.${kindName(kind)}`, {
      rules: [{ apiGroups: [kind.group], resources: [kind.plural], scope: kind.scope, operations: ["UPDATE"] }],
      matchConditions: [
        { name: "removes-the-finalizer", expression: `${hasFinalizer("oldObject")} && !(${hasFinalizer("object")})` },
      ],
      variables: {},
      validations: [
        {
          expression: `${hasRight(PROPOSE_RIGHT, place)} || ${hasRight(APPROVE_RIGHT, place)}`,
          messageExpression:
            `'the finalizer ${FINALIZER} is removed by the operator, once the stack is destroyed. To keep what the object made, ` +
            `set ${DELETION_POLICY_ANNOTATION}: Orphan. To replace the object, keep its finalizers, or use kubectl apply. ` +
            `To remove the finalizer by hand takes the right to ${verb} ${resource}.${group} ' + ${where}`,
        },
      ],
    });
  });
}

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

const [GROUP = "", VERSION = ""] = PLAN_TYPE.apiVersion.split("/");
const CATEGORY = "kindstack-plans";

interface Definition extends Pick<KindNames, "kind" | "plural" | "shortNames"> {
  description: string;
  spec: Type.TSchema;
  status?: Type.TSchema;
  columns: readonly PrinterColumn[];
}

/** The CRDs of plans and approvals, and the policies that protect them. They come with the CRDs of kinds. */
function planDefinitions(): Manifest[] {
  return [
    definition({
      kind: PLAN_TYPE.kind,
      plural: "plans",
      shortNames: ["kplan"],
      description: "What an update or the deletion of an object would do. It waits for an Approval.",
      spec: planSpecSchema,
      status: planStatusSchema,
      columns: [
        { name: "Kind", type: "string", jsonPath: ".spec.object.kind" },
        { name: "Object", type: "string", jsonPath: ".spec.object.name" },
        { name: "Create", type: "integer", jsonPath: ".spec.actions.create" },
        { name: "Update", type: "integer", jsonPath: ".spec.actions.update" },
        { name: "Replace", type: "integer", jsonPath: ".spec.actions.replace" },
        { name: "Delete", type: "integer", jsonPath: ".spec.actions.delete" },
        { name: "Cause", type: "string", jsonPath: ".spec.cause.reason" },
        { name: "State", type: "string", jsonPath: ".status.state" },
        { name: "Digest", type: "string", jsonPath: ".spec.digest", priority: 1 },
        AGE_COLUMN,
      ],
    }),
    definition({
      kind: APPROVAL_TYPE.kind,
      plural: "approvals",
      description: "The approval, or the rejection, of a plan, or of several.",
      spec: approvalSpecSchema,
      columns: [
        { name: "Kind", type: "string", jsonPath: ".spec.object.kind" },
        { name: "Object", type: "string", jsonPath: ".spec.object.name" },
        { name: "Decision", type: "string", jsonPath: ".spec.decision" },
        { name: "Approver", type: "string", jsonPath: ".spec.approver" },
        { name: "Expires", type: "string", jsonPath: ".spec.expiresAt" },
        { name: "Digest", type: "string", jsonPath: ".spec.digest", priority: 1 },
        AGE_COLUMN,
      ],
    }),
    ...planPolicies(),
  ];
}

/** Without a subresource for the status: what a plan says and what became of it is written at once. */
function definition({ description, spec, status, columns, ...names }: Definition): Manifest {
  const openAPIV3Schema = {
    description,
    type: "object",
    required: ["spec"],
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
      spec: structuralSchema(spec, "spec"),
      ...(status && { status: structuralSchema(status, "status") }),
    },
  };
  const version = { name: VERSION, served: true, storage: true };
  const own = { group: GROUP, version: VERSION, scope: "Namespaced", singular: names.kind.toLowerCase() } as const;
  const manifest = definitionOf({ ...names, ...own }, CATEGORY, {
    versions: [{ ...version, schema: { openAPIV3Schema }, additionalPrinterColumns: columns }],
  });
  return JSON.parse(JSON.stringify(manifest)); // without TypeBox's own marks
}
