import Type from "typebox";
import { SELECTOR } from "./labels";

/* On which nodes the operator's Pods run: keys of the configuration in the form of a Pod's fields. */

/** Replicas on one node would be gone together. */
const APART = {
  podAntiAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      {
        weight: 100,
        podAffinityTerm: { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: SELECTOR } },
      },
    ],
  },
};

export const affinity = Type.Object(
  {
    nodeAffinity: Type.Optional(Type.Object({})),
    podAffinity: Type.Optional(Type.Object({})),
    podAntiAffinity: Type.Optional(Type.Object({})),
  },
  {
    additionalProperties: false,
    default: APART,
    description: "affinity of the operator; by default replicas prefer different nodes",
  },
);

export const tolerations = Type.Array(
  Type.Object(
    {
      key: Type.Optional(Type.String()),
      operator: Type.Optional(Type.Enum(["Equal", "Exists", "Gt", "Lt"])),
      value: Type.Optional(Type.String()),
      effect: Type.Optional(Type.Enum(["NoSchedule", "PreferNoSchedule", "NoExecute"])),
      tolerationSeconds: Type.Optional(Type.Integer()),
    },
    { additionalProperties: false },
  ),
  { default: [], description: "taints of nodes that Pods tolerate" },
);

export const topologySpreadConstraints = Type.Array(
  Type.Object({
    maxSkew: Type.Integer({ minimum: 1 }),
    topologyKey: Type.String({ minLength: 1 }),
    whenUnsatisfiable: Type.Enum(["DoNotSchedule", "ScheduleAnyway"]),
    labelSelector: Type.Object({}),
  }),
  { default: [], description: "how replicas are spread over zones or nodes" },
);
