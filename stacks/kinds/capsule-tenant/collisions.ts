import Type from "typebox";
import { jsonReader } from "./annotation-json";

/** On a namespace: its Ingresses that came together with older ones that take the same requests, and which. */
export const COLLISIONS_ANNOTATION = "kindstack.dev/host-collisions";

export const readCollisions = jsonReader(Type.Record(Type.String(), Type.String()));

/** `undefined` when there are none. */
export function formatCollisions(collisions: Record<string, string>): string | undefined {
  return Object.keys(collisions).length === 0 ? undefined : JSON.stringify(collisions);
}
