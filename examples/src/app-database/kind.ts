import { type Convertible, defineKind, servedVersion } from "kindstack";
import * as database from "./database";
import { appDatabaseProgram } from "./program";
import { type AppDatabaseSpec, appDatabaseSpec, appDatabaseSpecV1alpha1, appDatabaseStatus } from "./schema";
import { appDatabaseReport } from "./status";

/** Where v1alpha1 keeps what it has no field for. */
const ROTATION = "examples.kindstack.dev/rotation";

export const appDatabase = defineKind({
  group: "examples.kindstack.dev",
  version: "v1",
  kind: "AppDatabase",
  plural: "appdatabases",
  singular: "appdatabase",
  scope: "Namespaced",
  description: "A PostgreSQL database with a role of its own, whose password is in a Secret.",
  spec: appDatabaseSpec,
  status: appDatabaseStatus,
  columns: [{ name: "Secret", type: "string", jsonPath: ".status.secret" }],
  owns: [{ apiVersion: "v1", kind: "Secret" }],
  directory: __dirname,
  program: appDatabaseProgram,
  report: appDatabaseReport,
  capabilities: {
    sdkRuntime: true,
    providers: [database],
    environment: { DATABASE_URL: "the server of AppDatabases, as a role that may create roles and databases" },
    versions: [
      servedVersion({
        version: "v1alpha1",
        spec: appDatabaseSpecV1alpha1,
        deprecationWarning: "examples.kindstack.dev/v1alpha1 AppDatabase is deprecated; use examples.kindstack.dev/v1",
        toStored: ({ spec: { name }, annotations: { [ROTATION]: rotation, ...annotations } }) => ({
          spec: { database: name, rotation: Number(rotation ?? 1) },
          annotations,
        }),
        fromStored: ({ spec: { database, rotation }, annotations }: Convertible<AppDatabaseSpec>) => ({
          spec: { name: database },
          annotations: { ...annotations, ...(rotation !== 1 && { [ROTATION]: String(rotation) }) },
        }),
      }),
    ],
  },
});
