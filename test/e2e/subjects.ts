import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect } from "vitest";
import { isApiError, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { statusOf } from "../../stacks/contract/kind";
import { controlPlane } from "../control-plane";
import { TestDatabase } from "../providers/postgres/database";
import { roleFor, userNamed } from "../rights";
import { COMPILER_OPTIONS } from "./compiler-options";
import { removeUntilGone, untilReady } from "./conditions";
import { kubectl } from "./kubectl";
import {
  CAPSULE_TENANT,
  CONFIG_MAP,
  capsuleTenant,
  deploymentOf,
  MEMCACHED,
  memcached,
  NAMESPACE,
  namespace,
  POD,
  POD_SET,
  POSTGRES_WRITER,
  podSet,
  postgresWriter,
  TENANT,
  tenant,
  uniqueName,
} from "./manifests";
import { client, create, edit, find, get, remove } from "./objects";
import { useOperator } from "./operator";

/*
 * Objects of all kinds with what they made, an operator that serves them, and a user who may do all with the kinds, but not
 * approve. What may happen to the objects is done with a stock kubectl.
 */

const ROOT = path.resolve(__dirname, "../..");
const RBAC = "rbac.authorization.k8s.io";
/** The user with rights on the kinds alone, and on the mode of namespaces. */
export const EDITOR = "ed";

/** Its program gives what it makes references to the object, as Kindstack does not write them. */
const kindModule = (group: string) => `import { controllerReference, defineKind, Type } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
export const note = defineKind({
  group: ${JSON.stringify(group)}, version: "v1", kind: "Note", plural: "notes", singular: "note", scope: "Namespaced",
  description: "", spec: Type.Object({ text: Type.String() }), status: Type.Object({}), columns: [],
  owns: [{ apiVersion: "v1", kind: "ConfigMap" }], directory: __dirname, report: () => ({}), capabilities: {},
  program(note, { owner }) {
    const { name, namespace = "" } = note.metadata;
    const metadata = { name, namespace, ownerReferences: [controllerReference(note)] };
    new KubernetesObject(name, {
      owner, manifest: { apiVersion: "v1", kind: "ConfigMap", metadata, data: { text: note.spec.text } },
    });
  },
});
`;

/** An object, and what its stack made. */
export interface Subject {
  kind: string;
  object: Manifest;
  /** What its stack made, with all in it that tells whether it was deleted or changed; by name. */
  made(): Promise<Record<string, unknown>>;
  /** A change of its spec that an update would apply. */
  change: object;
}

export class Subjects {
  readonly group = `${uniqueName("notes")}.example.com`;
  readonly namespace = uniqueName("subjects");
  readonly #directory = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-subjects-"));
  readonly #database = new TestDatabase(controlPlane().env);
  readonly operator;
  readonly #namespaces: string[] = [];
  #table = "";

  constructor() {
    const folder = path.join(this.#directory, "note");
    fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(path.join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: COMPILER_OPTIONS }));
    fs.writeFileSync(path.join(folder, "index.ts"), kindModule(this.group));
    fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(this.#directory, "node_modules"));
    beforeAll(async () => {
      await this.#database.open();
      this.#table = await this.#database.createStudents();
    });
    this.operator = useOperator({
      args: ["--concurrency", "8", "--admission-port", "0", "--kinds", `all,${folder}`],
      env: { PSQL_DBNAME: this.#database.name },
    });
    beforeAll(() => this.#open());
    afterAll(() => this.#close());
  }

  /** One object of each kind, applied and ready. */
  async make(): Promise<Subject[]> {
    const name = uniqueName("s");
    const subjects = [
      this.#capsuleTenant(name),
      this.#tenant(name),
      this.#memcached(name),
      this.#podSet(name),
      this.#row(name),
      this.#note(name),
    ];
    return Promise.all(
      subjects.map(async (making) => {
        const subject = await making;
        await untilReady(subject.object);
        await eventually(async () => expect(Object.values(await subject.made())).not.toContain(undefined));
        return subject;
      }),
    );
  }

  async #capsuleTenant(name: string): Promise<Subject> {
    const object = capsuleTenant(name, { limitRanges: [{ limits: [{ type: "Container", max: { cpu: "4" } }] }] });
    const space = `${name}-data`;
    this.#namespaces.push(space);
    await create(object);
    await create(namespace(space, { labels: { "capsule.clastix.io/tenant": name } }));
    await this.#precious(space);
    const limits = { apiVersion: "v1", kind: "LimitRange", metadata: { name: `capsule-${name}-0`, namespace: space } };
    const made = () => this.#states([namespace(space), this.#preciousIn(space), limits]);
    await eventually(async () => expect(await find(limits)).toBeDefined());
    return { kind: "Tenant.capsule", object, made, change: { limitRanges: [] } };
  }

  async #tenant(name: string): Promise<Subject> {
    const space = `${name}-mt`;
    this.#namespaces.push(space);
    const object = tenant(name, { namespaces: [space] });
    await create(object);
    await untilReady(object);
    await this.#precious(space);
    const binding = {
      apiVersion: `${RBAC}/v1`,
      kind: "RoleBinding",
      metadata: { name: `${space}-admin-rb`, namespace: space },
    };
    const made = () => this.#states([namespace(space), this.#preciousIn(space), binding]);
    return { kind: "Tenant.multitenancy", object, made, change: { adminGroups: ["others"] } };
  }

  async #memcached(name: string): Promise<Subject> {
    const object = memcached(name, {}, this.namespace);
    await create(object);
    return { kind: "Memcached", object, made: () => this.#states([deploymentOf(object)]), change: { size: 3 } };
  }

  async #podSet(name: string): Promise<Subject> {
    const object = podSet(name, 2);
    object.metadata.namespace = this.namespace;
    await create(object);
    await untilReady(object);
    const { items } = await client.list(POD, { namespace: this.namespace, labelSelector: `app=${name}` });
    const pods = items.map(({ metadata }) => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: metadata.name, namespace: this.namespace },
    }));
    return { kind: "PodSet", object, made: () => this.#states(pods), change: { replicas: 1 } };
  }

  async #row(name: string): Promise<Subject> {
    const object = postgresWriter(name, { table: this.#table }, this.namespace);
    await create(object);
    const made = async () => {
      const id = `${this.namespace}/${name}`;
      const [row] = await this.#database.query(`SELECT * FROM ${this.#table} WHERE id = $1`, [id]);
      return { row };
    };
    return { kind: "PostgresWriter", object, made, change: { age: 77 } };
  }

  async #note(name: string): Promise<Subject> {
    const metadata = { name, namespace: this.namespace };
    const object: Manifest = { apiVersion: `${this.group}/v1`, kind: "Note", metadata, spec: { text: "one" } };
    await create(object);
    const map = { apiVersion: "v1", kind: "ConfigMap", metadata };
    return { kind: "Note", object, made: () => this.#states([map]), change: { text: "two" } };
  }

  /** What tells whether these are as they were; `undefined` for what is gone or on its way out. */
  async #states(manifests: readonly Manifest[]): Promise<Record<string, unknown>> {
    const states = manifests.map(async (manifest) => {
      const live = await find(manifest);
      const id = `${manifest.kind} ${manifest.metadata.name}`;
      return [id, live?.metadata.deletionTimestamp === undefined ? stateOf(live) : undefined];
    });
    return Object.fromEntries(await Promise.all(states));
  }

  #preciousIn(space: string): Manifest {
    return { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "precious", namespace: space } };
  }

  async #precious(space: string): Promise<void> {
    await create({ ...this.#preciousIn(space), data: { a: "b" } });
  }

  async #open(): Promise<void> {
    await create(namespace(this.namespace));
    const groups = [TENANT, CAPSULE_TENANT, MEMCACHED, POD_SET, POSTGRES_WRITER].map(
      ({ apiVersion }) => apiVersion.split("/")[0] as string,
    );
    const usual = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
    const rules = [
      { apiGroups: [...groups, this.group], resources: ["*"], verbs: usual },
      { apiGroups: ["kindstack.dev"], resources: ["plans", "approvals"], verbs: usual },
      { apiGroups: [""], resources: ["namespaces"], verbs: ["get", "patch"] },
    ];
    for (const manifest of roleFor([userNamed(EDITOR)], rules, { name: this.namespace })) await create(manifest);
    // Policies take a moment to be in force.
    await Promise.all(
      this.#probes().map(async (probe) => {
        await create(probe);
        await untilReady(probe);
        await eventually(async () =>
          expect((await this.patch(probe, { finalizers: null })).stderr).toContain("denied"),
        );
        await removeUntilGone(probe);
      }),
    );
  }

  /** Waits until the operator has seen all changes of objects so far. */
  async untilSeen(): Promise<void> {
    await Promise.all(
      this.#probes().map(async (probe) => {
        await create(probe);
        await eventually(async () => expect(statusOf(await get(probe)).conditions).toBeDefined());
      }),
    );
  }

  /** An object of each kind, with little to make. */
  #probes(): Manifest[] {
    const name = uniqueName("probe");
    const metadata = { name, namespace: this.namespace };
    return [
      capsuleTenant(name),
      tenant(name),
      memcached(name, {}, this.namespace),
      postgresWriter(name, { table: this.#table }, this.namespace),
      { ...podSet(name, 0), metadata },
      { apiVersion: `${this.group}/v1`, kind: "Note", metadata, spec: { text: "" } },
    ];
  }

  async #close(): Promise<void> {
    // Their deletion may wait for an approval.
    const left = await Promise.all(this.#probes().map(async (type) => (await client.list(type)).items));
    await Promise.all(
      left.flat().map(async (object) => {
        await remove(object);
        await edit(object, { metadata: { finalizers: null } }).catch((error: unknown) => {
          if (!isApiError(error, 404)) throw error; // it is gone
        });
      }),
    );
    for (const name of [this.namespace, ...this.#namespaces]) await remove(namespace(name));
    for (const kind of ["ClusterRole", "ClusterRoleBinding"]) {
      await client.delete({ apiVersion: `${RBAC}/v1`, kind }, this.namespace);
    }
    await this.#database.close();
    fs.rmSync(this.#directory, { recursive: true });
  }

  /** kubectl as the editor. */
  run(words: readonly string[], input?: string): ReturnType<typeof kubectl> {
    return kubectl([`--as=${EDITOR}`, ...words], input);
  }

  delete(object: Manifest, cascade: string): ReturnType<typeof kubectl> {
    return this.run(["delete", ...named(object), `--cascade=${cascade}`, "--wait=false"]);
  }

  patch(object: Manifest, metadata: object): ReturnType<typeof kubectl> {
    return this.run(["patch", ...named(object), "--type=merge", "-p", JSON.stringify({ metadata })]);
  }
}

/** How kubectl is told of an object. */
export function named({ apiVersion, kind, metadata: { name = "", namespace } }: Manifest): string[] {
  const [group = ""] = apiVersion.split("/");
  return [`${kind}.${group}`, name, ...(namespace === undefined ? [] : ["-n", namespace])];
}

/** What others do not change: which object it is, and what the stack or its owner wrote. */
function stateOf(live: LiveObject | undefined): unknown {
  if (live === undefined) return undefined;
  const { uid, labels, annotations = {} } = live.metadata;
  const own = Object.entries(annotations).filter(([key]) => key.startsWith("kindstack.dev/"));
  const { status: _, metadata: __, ...contents } = live;
  return { uid, labels, own, contents };
}

/** Without what says whose it is: it may be released. */
export function withoutMarks(made: Record<string, unknown>): unknown {
  return JSON.parse(JSON.stringify(made, (key, value) => (key === "own" || key === "labels" ? undefined : value)));
}

/** A ConfigMap that refers to an object, as the garbage collector acts on it. */
export async function canary(object: Manifest, within: string): Promise<Manifest> {
  const { apiVersion, kind, metadata } = await get(object);
  const owner = { apiVersion, kind, name: metadata.name, uid: metadata.uid, blockOwnerDeletion: true };
  const name = uniqueName("canary");
  return create({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: within, ownerReferences: [owner] },
  });
}

export async function annotate(object: Manifest, annotations: Record<string, string | null>): Promise<void> {
  await edit(object, { metadata: { annotations } });
}

export { CONFIG_MAP, NAMESPACE };
