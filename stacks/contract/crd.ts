import Type from "typebox";
import type { KubernetesClient, Manifest, ResourceType } from "../../providers/kubernetes/client";
import { conditionsSchema } from "./condition";
import { type AnyKind, kindName, type PrinterColumn } from "./kind";
import { PAUSED_ANNOTATION } from "./object";

const stackSchema = Type.Object(
  {
    name: Type.String({ description: "The Pulumi stack that stands behind this object." }),
    program: Type.String({ description: "Digest of the program of the last successful update." }),
    resources: Type.Optional(
      Type.Array(
        Type.Object({
          id: Type.String({ description: "apiVersion/kind/namespace/name of an object that the stack made." }),
          fields: Type.String({ description: "Digest of the fields that Kindstack owns in it." }),
        }),
        { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"] },
      ),
    ),
  },
  { description: "What the last successful update left behind." },
);

/** All kinds at once: `kubectl get kindstack -A`. */
const CATEGORY = "kindstack";

const READY_COLUMNS: readonly PrinterColumn[] = [
  { name: "Ready", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  { name: "Reason", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
  { name: "Paused", type: "string", jsonPath: `.metadata.annotations.${PAUSED_ANNOTATION.replaceAll(".", "\\.")}` },
];

/** Installers may overwrite `managed-by`, as Helm does; `part-of` stays. */
const LABELS = { "app.kubernetes.io/managed-by": "kindstack", "app.kubernetes.io/part-of": "kindstack" } as const;

/** The type of CustomResourceDefinitions. */
export const DEFINITION_TYPE: ResourceType = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
};

/** The kinds whose CustomResourceDefinition exists and is another operator's. */
export async function findForeignDefinitions(
  client: Pick<KubernetesClient, "get">,
  kinds: readonly AnyKind[],
): Promise<AnyKind[]> {
  const definitions = await Promise.all(kinds.map((kind) => client.get(DEFINITION_TYPE, kindName(kind))));
  return kinds.filter((_, index) => {
    const definition = definitions[index];
    return definition !== undefined && !isOwnDefinition(definition);
  });
}

/** Whether Kindstack's installation made this CustomResourceDefinition, and not another operator's of the same name. */
function isOwnDefinition({ metadata }: Manifest): boolean {
  return Object.entries(LABELS).some(([label, value]) => metadata.labels?.[label] === value);
}

/** The CustomResourceDefinition of a kind. */
export function customResourceDefinition(kind: AnyKind): Manifest {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: kindName(kind), labels: LABELS },
    spec: {
      group: kind.group,
      scope: kind.scope,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.singular,
        ...(kind.shortNames && { shortNames: [...kind.shortNames] }),
        categories: [CATEGORY],
      },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: objectSchema(kind) },
          subresources: { status: {}, ...(kind.capabilities.scale && { scale: kind.capabilities.scale }) },
          additionalPrinterColumns: [
            ...kind.columns,
            ...READY_COLUMNS,
            { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
          ],
        },
      ],
    },
  };
}

function objectSchema(kind: AnyKind): object {
  const schema = Type.Object(
    {
      apiVersion: Type.Optional(Type.String()),
      kind: Type.Optional(Type.String()),
      // Without `properties: {}`, which the API server drops: what it stores must be what is applied, or another field
      // manager that applies the same CRD conflicts with the first.
      metadata: Type.Optional(Type.Unsafe({ type: "object" })),
      spec: kind.spec,
      status: Type.Optional(
        Type.Partial(
          Type.Object({
            ...kind.status.properties,
            observedGeneration: Type.Integer({ format: "int64" }),
            conditions: conditionsSchema,
            stack: stackSchema,
            lastHandledReconcile: Type.String({ description: "Value of kindstack.dev/reconcile that was acted on." }),
          }),
        ),
      ),
    },
    {
      description: kind.description,
      ...(kind.capabilities.rules && { "x-kubernetes-validations": kind.capabilities.rules }),
    },
  );
  // TypeBox keeps its own marks in properties that are not enumerable; what is left is plain OpenAPI.
  return JSON.parse(JSON.stringify(schema));
}
