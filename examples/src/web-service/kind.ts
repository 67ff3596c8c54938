import { type Convertible, defineKind, servedVersion } from "kindstack";
import { webServiceProgram } from "./program";
import { type WebServiceSpec, webServiceSpec, webServiceSpecV1alpha1, webServiceStatus } from "./schema";
import { webServiceReport } from "./status";

type Bounds = NonNullable<WebServiceSpec["autoscaling"]>;

/** Where v1alpha1 keeps what it has no field for. */
const AUTOSCALING = "examples.kindstack.dev/autoscaling";

/** Where `kubectl scale` and autoscalers find what they read and write. */
const SCALE = {
  specReplicasPath: ".spec.replicas",
  statusReplicasPath: ".status.replicas",
  labelSelectorPath: ".status.selector",
};

export const webService = defineKind({
  group: "examples.kindstack.dev",
  version: "v1",
  kind: "WebService",
  plural: "webservices",
  singular: "webservice",
  shortNames: ["web"],
  scope: "Namespaced",
  description: "A web service: Pods, their Service, and what keeps them available.",
  spec: webServiceSpec,
  status: webServiceStatus,
  columns: [
    { name: "Replicas", type: "integer", jsonPath: ".status.replicas" },
    { name: "Host", type: "string", jsonPath: ".spec.host" },
  ],
  owns: [
    { apiVersion: "apps/v1", kind: "Deployment" },
    { apiVersion: "v1", kind: "Service" },
    { apiVersion: "policy/v1", kind: "PodDisruptionBudget" },
    { apiVersion: "networking.k8s.io/v1", kind: "Ingress" },
    { apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler" },
  ],
  directory: __dirname,
  program: webServiceProgram,
  report: webServiceReport,
  capabilities: {
    scale: SCALE,
    versions: [
      servedVersion({
        version: "v1alpha1",
        spec: webServiceSpecV1alpha1,
        scale: { ...SCALE, specReplicasPath: ".spec.instances" },
        deprecationWarning: "examples.kindstack.dev/v1alpha1 WebService is deprecated; use examples.kindstack.dev/v1",
        toStored: ({
          spec: { image, port, host, instances },
          annotations: { [AUTOSCALING]: bounds, ...annotations },
        }) => ({
          spec: {
            container: { image, port },
            replicas: instances,
            ...(host !== undefined && { host }),
            ...(bounds !== undefined && { autoscaling: JSON.parse(bounds) as Bounds }),
          },
          annotations,
        }),
        fromStored: ({
          spec: { container, host, replicas, autoscaling },
          annotations,
        }: Convertible<WebServiceSpec>) => ({
          spec: { ...container, instances: replicas, ...(host !== undefined && { host }) },
          annotations: { ...annotations, ...(autoscaling && { [AUTOSCALING]: JSON.stringify(autoscaling) }) },
        }),
      }),
    ],
  },
});
