import Type from "typebox";

export const memcachedSpec = Type.Object({
  size: Type.Integer({
    description: "Number of Memcached instances.",
    minimum: 1,
    maximum: 3,
    default: 1,
    format: "int32",
  }),
  containerPort: Type.Integer({
    description: "The port of the instances.",
    minimum: 1,
    maximum: 65535,
    default: 11211,
    format: "int32",
  }),
});
export type MemcachedSpec = Type.Static<typeof memcachedSpec>;

/** Nothing of its own: all that Memcached says, it says in conditions. */
export const memcachedStatus = Type.Object({});
