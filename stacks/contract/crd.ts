import Type from "typebox";
import { type KubernetesClient, known, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { conditionsSchema } from "./condition";
import { type AnyKind, type KindNames, kindName } from "./kind";
import { stackRecordSchema } from "./object";
import type { PrinterColumn, ScalePaths } from "./served-version";
import { structuralSchema } from "./structural";

/** All kinds at once: `kubectl get kindstack -A`. */
const CATEGORY = "kindstack";

const READY_COLUMNS: readonly PrinterColumn[] = [
  { name: "Synced", type: "string", jsonPath: '.status.conditions[?(@.type=="Synced")].status' },
  { name: "Ready", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  { name: "Reason", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
  { name: "Mode", type: "string", jsonPath: ".status.mode" },
  { name: "Paused", type: "string", jsonPath: '.status.conditions[?(@.type=="Paused")].status' },
];

export const AGE_COLUMN: PrinterColumn = { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" };

/** Installers may overwrite `managed-by`, as Helm does; `part-of` stays. */
export const INSTALLED_LABELS = {
  "app.kubernetes.io/managed-by": "kindstack",
  "app.kubernetes.io/part-of": "kindstack",
} as const;

export const DEFINITION_TYPE = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" } as const;

type Reader = Pick<KubernetesClient, "get">;

/** The kinds whose CustomResourceDefinition exists and was not installed by Kindstack. */
export function findForeignDefinitions(client: Reader, kinds: readonly AnyKind[]): Promise<AnyKind[]> {
  return kindsDefined(client, kinds, (definition) => !isInstalled(definition));
}

/** The kinds whose CustomResourceDefinition is being deleted, which waits for all objects of the kind. */
export function findEndingDefinitions(client: Reader, kinds: readonly AnyKind[]): Promise<AnyKind[]> {
  return kindsDefined(client, kinds, ({ metadata }) => metadata.deletionTimestamp !== undefined);
}

async function kindsDefined(client: Reader, kinds: readonly AnyKind[], suits: (definition: LiveObject) => boolean) {
  const definitions = await Promise.all(kinds.map((kind) => known(client.get(DEFINITION_TYPE, kindName(kind)))));
  return kinds.filter((_, index) => definitions[index] !== undefined && suits(definitions[index]));
}

export function isInstalled({ metadata: { labels } }: LiveObject): boolean {
  return Object.entries(INSTALLED_LABELS).some(([label, value]) => labels?.[label] === value);
}

/** How the API server reaches a webhook, in the form of a CRD's `clientConfig`. */
export type WebhookClient = Readonly<Record<string, unknown>>;

/** A CustomResourceDefinition. @param category what `kubectl get` takes for several kinds at once */
export function definitionOf(
  { group, scope, kind, plural, singular, shortNames = [], categories = [] }: KindNames & Pick<AnyKind, "scope">,
  category: string,
  spec: object,
): Manifest {
  const names = {
    kind,
    listKind: `${kind}List`,
    plural,
    singular,
    ...(shortNames.length > 0 && { shortNames: [...shortNames] }),
    categories: [...new Set([category, ...categories])],
  };
  const metadata = { name: `${plural}.${group}`, labels: INSTALLED_LABELS };
  return { ...DEFINITION_TYPE, metadata, spec: { group, scope, names, ...spec } };
}

/** The CustomResourceDefinition of a kind, without the webhook that converts its versions: the operator alone writes that. */
export function customResourceDefinition(kind: AnyKind): Manifest {
  const { versions = [] } = kind.capabilities;
  const subresourcesOf = ({ scale }: { scale?: ScalePaths }) => ({ status: {}, ...(scale && { scale }) });
  return definitionOf(kind, CATEGORY, {
    versions: [
      {
        name: kind.version,
        served: true,
        storage: true,
        schema: { openAPIV3Schema: objectSchema(kind) },
        subresources: subresourcesOf(kind.capabilities),
        additionalPrinterColumns: [...kind.columns, ...READY_COLUMNS, AGE_COLUMN],
      },
      ...versions.map(({ version, spec, deprecationWarning, columns = commonColumns(kind), ...served }) => ({
        name: version,
        served: true,
        storage: false,
        ...(deprecationWarning !== undefined && { deprecated: true, deprecationWarning }),
        schema: { openAPIV3Schema: objectSchema({ ...kind, spec, capabilities: {} }) },
        subresources: subresourcesOf(served),
        additionalPrinterColumns: [...columns, ...READY_COLUMNS, AGE_COLUMN],
      })),
    ],
  });
}

/** The columns whose paths are the same in all versions. */
function commonColumns({ columns }: AnyKind): PrinterColumn[] {
  return columns.filter(({ jsonPath }) => /^\.(status|metadata)\b/.test(jsonPath));
}

function objectSchema(kind: AnyKind): object {
  const schema = Type.Object(
    {
      apiVersion: Type.Optional(Type.String()),
      kind: Type.Optional(Type.String()),
      // Without `properties: {}`, which the API server drops: what it stores must be what is applied, or another field
      // manager that applies the same CRD conflicts with the first.
      metadata: Type.Optional(Type.Unsafe({ type: "object" })),
      spec: Type.Unsafe(structuralSchema(kind.spec, "spec")),
      status: Type.Optional(
        Type.Partial(
          Type.Object({
            ...(structuralSchema(kind.status, "status").properties as Type.TProperties),
            observedGeneration: Type.Integer({ format: "int64" }),
            conditions: conditionsSchema,
            stack: stackRecordSchema,
            lastHandledReconcile: Type.String({ description: "Value of kindstack.dev/reconcile that was acted on." }),
            mode: Type.String({ description: "The mode that holds for the object; absent for Apply." }),
          }),
          // Until an operator has seen the object, kstatus, and so Flux, takes it for one in progress.
          { default: { observedGeneration: -1 } },
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
