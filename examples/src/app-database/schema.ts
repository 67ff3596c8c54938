import { Type } from "kindstack";

const DATABASE = { pattern: "^[a-z][a-z0-9_]*$", maxLength: 63 };

export const appDatabaseSpec = Type.Object({
  database: Type.String({
    description: "The name of the database, and of the role that owns it.",
    ...DATABASE,
    "x-kubernetes-validations": [{ rule: "self == oldSelf", message: "cannot be changed: the data would stay behind" }],
  }),
  rotation: Type.Integer({ description: "Raise it for a new password.", minimum: 1, default: 1 }),
});
export type AppDatabaseSpec = Type.Static<typeof appDatabaseSpec>;

/** v1alpha1 had one field. */
export const appDatabaseSpecV1alpha1 = Type.Object({
  name: Type.String({ description: "The name of the database.", ...DATABASE }),
});

export const appDatabaseStatus = Type.Object({
  secret: Type.String({ description: "The Secret with database, user and password; empty while there is none." }),
});
export type AppDatabaseStatus = Type.Static<typeof appDatabaseStatus>;
