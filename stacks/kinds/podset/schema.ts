import Type from "typebox";

export const podSetSpec = Type.Object({
  replicas: Type.Integer({
    description: "Number of Pods.",
    minimum: 0,
    maximum: 1000,
    default: 1,
    format: "int32",
  }),
});
export type PodSetSpec = Type.Static<typeof podSetSpec>;

export const podSetStatus = Type.Object({
  podNames: Type.Array(Type.String(), {
    description: "Pods that are pending or running and not being deleted.",
    "x-kubernetes-list-type": "set",
  }),
  replicas: Type.Integer({ description: "Number of these Pods.", format: "int32" }),
  readyReplicas: Type.Integer({ description: "Number of these Pods that are ready.", format: "int32" }),
  selector: Type.String({ description: "The label selector of the Pods, for the scale subresource." }),
});
export type PodSetStatus = Type.Static<typeof podSetStatus>;
