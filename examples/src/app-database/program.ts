import type { KindObject, ProgramContext } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
import { Database } from "./database";
import type { AppDatabaseSpec } from "./schema";

/** A database, and a Secret with what an application needs to log in. */
export function appDatabaseProgram({ metadata, spec }: KindObject<AppDatabaseSpec>, { owner }: ProgramContext): void {
  const { name, namespace = "" } = metadata;
  const database = new Database(`${name}/database`, {
    name: spec.database,
    owner: `${namespace}/${name}`,
    rotation: spec.rotation,
  });
  new KubernetesObject(`${name}/secret`, {
    owner,
    manifest: {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: `${name}-database`, namespace },
      stringData: { database: spec.database, user: spec.database, password: database.password },
    },
  });
}
