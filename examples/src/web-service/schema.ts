import { Type } from "kindstack";

const image = Type.String({ description: "The image of its container.", minLength: 1, maxLength: 500 });
const port = Type.Integer({ description: "Where the container listens.", minimum: 1, maximum: 65535, default: 8080 });
const host = Type.Optional(
  Type.String({ description: "The host name of an Ingress; without, there is none.", format: "hostname" }),
);
const replicas = Type.Integer({ description: "How many Pods run.", minimum: 0, maximum: 100, default: 2 });
const count = Type.Integer({ minimum: 1, maximum: 100 });

export const webServiceSpec = Type.Object({
  container: Type.Object({ image, port }),
  host,
  replicas,
  autoscaling: Type.Optional(
    Type.Object(
      { minReplicas: count, maxReplicas: count },
      {
        description: "Bounds of a HorizontalPodAutoscaler, which then sets `replicas`.",
        "x-kubernetes-validations": [
          { rule: "self.minReplicas <= self.maxReplicas", message: "minReplicas must not exceed maxReplicas" },
        ],
      },
    ),
  ),
});
export type WebServiceSpec = Type.Static<typeof webServiceSpec>;

/** v1alpha1 had neither a container of its own nor an autoscaler, and called the replicas instances. */
export const webServiceSpecV1alpha1 = Type.Object({ image, port, host, instances: replicas });

export const webServiceStatus = Type.Object({
  replicas: Type.Integer({ description: "How many Pods there are." }),
  readyReplicas: Type.Integer({ description: "How many of them are ready." }),
  selector: Type.String({ description: "The labels of its Pods, for autoscalers." }),
});
export type WebServiceStatus = Type.Static<typeof webServiceStatus>;
