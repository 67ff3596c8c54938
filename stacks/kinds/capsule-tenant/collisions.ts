import Type from "typebox";
import type { LiveObject } from "../../../providers/kubernetes/index";
import { jsonReader } from "./annotation-json";

/** On a namespace: its Ingresses that were created together with older colliding Ingresses, and the names of those. */
export const COLLISIONS_ANNOTATION = "kindstack.dev/host-collisions";

const readCollisions = jsonReader(Type.Record(Type.String(), Type.String()));

/** What is noted on a namespace, by the name of the Ingress. */
export function collisionsOf({ metadata }: LiveObject): Record<string, string> {
  return readCollisions(metadata.annotations?.[COLLISIONS_ANNOTATION]) ?? {};
}
