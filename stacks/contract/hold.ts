import type { Manifest } from "../../providers/kubernetes/client";
import { type AnyKind, kindName } from "./kind";
import { PAUSED_ANNOTATION } from "./object";
import { STACK_NUMBER_ANNOTATION } from "./shared-stack";

/** On every object from before its first update until its stack is destroyed. */
export const FINALIZER = "kindstack.dev/stack";

const API_VERSION = "admissionregistration.k8s.io/v1";

/**
 * Has the API server itself put the finalizer on a kind's objects as they are created, and into which stack those go that
 * share one, so that the operator need not write to each before its first update: a third of the API server's part in a
 * burst. Served by Kubernetes 1.36 and later. Where it is missing or does not work the operator writes the same.
 *
 * One that is created paused can be deleted while it is, as nothing was made of it yet.
 */
export function holdPolicy(kind: AnyKind): Manifest[] {
  const name = `hold.${kindName(kind)}`;
  const metadata = { name, labels: { "app.kubernetes.io/managed-by": "kindstack" } };
  return [
    {
      apiVersion: API_VERSION,
      kind: "MutatingAdmissionPolicy",
      metadata,
      spec: {
        failurePolicy: "Ignore",
        reinvocationPolicy: "Never",
        matchConstraints: {
          resourceRules: [
            { apiGroups: [kind.group], apiVersions: [kind.version], operations: ["CREATE"], resources: [kind.plural] },
          ],
        },
        matchConditions: [{ name: "is-not-paused", expression: `${annotation(PAUSED_ANNOTATION, "false")} != "true"` }],
        mutations: [{ patchType: "ApplyConfiguration", applyConfiguration: { expression: heldMetadata(kind) } }],
      },
    },
    {
      apiVersion: API_VERSION,
      kind: "MutatingAdmissionPolicyBinding",
      metadata,
      spec: { policyName: name },
    },
  ];
}

function heldMetadata({ granularity }: AnyKind): string {
  const number = `annotations: {"${STACK_NUMBER_ANNOTATION}": ${annotation(STACK_NUMBER_ANNOTATION, "0")}}`;
  const fields = [`finalizers: ["${FINALIZER}"]`, ...(granularity === "namespace" ? [number] : [])];
  return `Object{metadata: Object.metadata{${fields.join(", ")}}}`;
}

/** In CEL: an annotation of the new object, or what it is taken for where it is missing. */
function annotation(name: string, otherwise: string): string {
  return `object.metadata.?annotations[?"${name}"].orValue("${otherwise}")`;
}
