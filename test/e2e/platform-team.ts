import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll } from "vitest";
import { stringify } from "yaml";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import { OWNER_ANNOTATION, OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { type AnyKind, kindApiVersion } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import { controlPlane } from "../control-plane";
import { TestDatabase } from "../providers/postgres/database";
import { client } from "./objects";
import { TestOperator } from "./operator";
import { PulumiProject } from "./pulumi";

/** For a test of a few runs of the CLI, each of some seconds. */
export const PULUMI_TIMEOUT_MS = 240_000;

/** A kind's object with a name of its own. */
export function manifestOf(kind: AnyKind, name: string, spec: object): Manifest {
  const namespace = kind.scope === "Namespaced" ? { namespace: "default" } : {};
  return { apiVersion: kindApiVersion(kind), kind: kind.kind, metadata: { name, ...namespace }, spec };
}

/** The UIDs of what {@link PlatformTeam.madeFor} returns, sorted. */
export function uidsOf(objects: ReadonlyMap<string, LiveObject>): string[] {
  return [...objects].map(([name, { metadata }]) => `${name} ${metadata.uid}`).sort();
}

/** The files, stacks and database of a platform team that runs `pulumi up`; an operator works on the same stacks. */
export interface PlatformTeam {
  /** Of manifests. */
  readonly folder: string;
  /** Not running yet. */
  readonly operator: TestOperator;
  readonly database: TestDatabase;
  /** Opened before the first test. */
  readonly project: PulumiProject;
  /** Writes manifests to a file. @returns its path */
  write(name: string, ...manifests: Manifest[]): string;
  /** An object's live resources in the cluster, by `Kind/name`. */
  madeFor(kind: AnyKind, manifest: Manifest): Promise<Map<string, LiveObject>>;
  /** All rows of the table `students`. */
  rows(): Promise<{ id: string; age: number }[]>;
}

/** For the tests of a file. */
export function usePlatformTeam(): PlatformTeam {
  const database = new TestDatabase(controlPlane().env);
  const operator = new TestOperator({ env: { PSQL_DBNAME: database.name } });
  const folder = path.join(operator.directory, "crs");
  let project: PulumiProject | undefined;

  beforeAll(async () => {
    await database.open();
    await database.query("CREATE TABLE students (id text PRIMARY KEY, name text, age integer, country text)");
    for (const directory of [folder, operator.stateDirectory]) fs.mkdirSync(directory, { recursive: true });
    project = await PulumiProject.open({
      PULUMI_BACKEND_URL: `file://${operator.stateDirectory}`,
      PSQL_DBNAME: database.name,
    });
  });
  afterAll(async () => {
    project?.close();
    await operator.dispose();
    await database.close();
  });

  return {
    folder,
    operator,
    database,
    get project() {
      if (project === undefined) throw new Error("the project is opened before the first test");
      return project;
    },
    write(name, ...manifests) {
      const file = path.join(folder, `${name}.yaml`);
      fs.writeFileSync(file, manifests.map((manifest) => stringify(manifest)).join("---\n"));
      return file;
    },
    async madeFor(kind, manifest) {
      const description = `${kind.kind}.${kind.group}/${objectKey(manifest.metadata)}`;
      const lists = await Promise.all(
        kind.owns.map(async (type) =>
          client.list(await client.resourceType(type.apiVersion, type.kind), { labelSelector: OWNER_UID_LABEL }),
        ),
      );
      const made = lists
        .flatMap(({ items }) => items)
        .filter(({ metadata }) => metadata.annotations?.[OWNER_ANNOTATION] === description)
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined);
      return new Map(made.map((object) => [`${object.kind}/${object.metadata.name}`, object]));
    },
    rows: () => database.query("SELECT id, age FROM students ORDER BY id"),
  };
}
