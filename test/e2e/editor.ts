import { KubeConfig } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect } from "vitest";
import { ApiError, KubernetesClient, type LiveObject, type Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { statusOf } from "../../stacks/contract/kind";
import { MODE_ANNOTATION } from "../../stacks/contract/mode";
import { controlPlane } from "../control-plane";
import { type Request, type Step, sequences } from "./gestures";
import { namespace, uniqueName } from "./manifests";
import { client, create, edit, find, get, remove } from "./objects";
import { canary, EDITOR, type Subject, type Subjects, withoutMarks } from "./subjects";

/*
 * An editor who tries sequences of gestures on objects whose changes wait. The invariant: what their stacks made stays, and as it was.
 */

/** Where the mode is set; a new object in the place of one that protects itself is not protected, so none is made. */
export const PROTECTIONS = ["the object", "the namespace", "the kind"] as const;
type Protection = (typeof PROTECTIONS)[number];

const ACCEPTED = "accepted";

export class Editor {
  readonly #subjects: Subjects;
  readonly #elsewhere = uniqueName("elsewhere");
  #client: KubernetesClient | undefined;

  constructor(subjects: Subjects) {
    this.#subjects = subjects;
    beforeAll(async () => {
      const config = new KubeConfig();
      config.loadFromFile(controlPlane().kubeconfig);
      config.users = config.users.map((known) => ({ ...known, impersonateUser: EDITOR }));
      this.#client = new KubernetesClient(config);
      await create(namespace(this.#elsewhere));
    });
    afterAll(async () => {
      this.#client?.close();
      await remove(namespace(this.#elsewhere));
    });
  }

  /** @returns how many requests the API server has accepted, and refused */
  async attack(
    protection: Protection,
    { count, seed }: { count: number; seed: number },
  ): Promise<{ accepted: number; refused: number }> {
    const sets = await Promise.all(Array.from({ length: count }, () => this.#made(protection)));
    await this.#protect(protection, sets.flat());
    try {
      const objects = sets[0]?.length ?? 0;
      const logs = await Promise.all(
        sequences(count, { objects, seed }).map((steps, set) =>
          this.#perform(sets[set] as Target[], steps, protection),
        ),
      );
      await this.#untilAtRest(sets.flat());
      for (const [set, targets] of sets.entries()) {
        for (const { kind, before, made } of targets) {
          const after = `${kind} after\n${logs[set]?.join("\n")}`;
          expect(withoutMarks(await made()), after).toEqual(withoutMarks(before));
        }
      }
      const answers = logs.flat();
      const accepted = answers.filter((line) => line.endsWith(ACCEPTED)).length;
      return { accepted, refused: answers.length - accepted };
    } finally {
      await edit(namespace(this.#subjects.namespace), modeOf(null));
    }
  }

  async #made(protection: Protection): Promise<Target[]> {
    const subjects = await this.#subjects.make();
    const kept = protection === "the namespace" ? subjects.filter(({ object }) => object.metadata.namespace) : subjects;
    return Promise.all(
      kept.map(async (subject) => ({
        ...subject,
        live: await get(subject.object),
        before: await subject.made(),
        mark: await canary(subject.object, this.#subjects.namespace),
      })),
    );
  }

  async #protect(protection: Protection, targets: readonly Target[]): Promise<void> {
    if (protection === "the kind") await this.#subjects.operator.restart({ args: ["--mode", "Propose"] });
    if (protection === "the namespace") await edit(namespace(this.#subjects.namespace), modeOf("Propose"));
    if (protection === "the object") await Promise.all(targets.map(({ object }) => edit(object, modeOf("Propose"))));
    await Promise.all(targets.map(({ object }) => untilProposed(object)));
  }

  /** Sends one request after the other, and tells the answer to each. */
  async #perform(targets: readonly Target[], steps: readonly Step[], protection: Protection): Promise<string[]> {
    const log: string[] = [];
    for (const { index, gesture, waits } of steps) {
      const target = targets[index % targets.length] as Target;
      target.live = (await find(target.object)) ?? target.live;
      const request = gesture(target);
      if (protection === "the object" && mayCreate(request)) continue;
      const answer = await this.#send(target.object, request).then(
        () => ACCEPTED,
        (error: unknown) => (error instanceof ApiError ? error.message : Promise.reject(error)),
      );
      log.push(`${target.kind}: ${request.method} ${request.to ?? ""} ${JSON.stringify(request.body)}: ${answer}`);
      if (waits) await this.#untilIdle();
    }
    return log;
  }

  async #send({ apiVersion, kind, metadata }: Manifest, request: Request): Promise<unknown> {
    if (this.#client === undefined) throw new Error("the editor is not there yet");
    const { plural, namespaced } = await client.resourceType(apiVersion, kind);
    const { method, to, ...rest } = request;
    const where = to === "another namespace" ? this.#elsewhere : metadata.namespace;
    const collection = `/apis/${apiVersion}${namespaced ? `/namespaces/${where}` : ""}/${plural}`;
    const paths: Record<NonNullable<Request["to"]>, string> = {
      "the namespace": `/api/v1/namespaces/${this.#subjects.namespace}`,
      "the collection": collection,
      "another namespace": collection,
      "/status": `${collection}/${metadata.name}/status`,
      "/scale": `${collection}/${metadata.name}/scale`,
    };
    return this.#client.json(method, to === undefined ? `${collection}/${metadata.name}` : paths[to], rest);
  }

  async #untilIdle(): Promise<void> {
    const { operator } = this.#subjects;
    await eventually(async () => {
      expect(await operator.metric("workqueue_depth")).toBe(0);
      expect(await operator.metric("controller_runtime_active_workers")).toBe(0);
    });
  }

  /** Waits until the operator has seen all, and the garbage collector has done all that it was told to. */
  async #untilAtRest(targets: readonly Target[]): Promise<void> {
    await Promise.all(
      targets.map(async ({ object, live: { metadata }, mark }) => {
        const left = await find(object);
        if (left?.metadata.uid !== metadata.uid) await untilReleased(mark);
        else if (left.metadata.deletionTimestamp !== undefined) await untilCollected(object);
      }),
    );
    await this.#subjects.untilSeen();
    await this.#untilIdle();
  }
}

interface Target extends Subject {
  /** As it was last seen. */
  live: LiveObject;
  before: Record<string, unknown>;
  /** What the garbage collector deletes with the object, or takes the reference from. */
  mark: Manifest;
}

const mayCreate = ({ method, contentType }: Request) => method === "POST" || contentType?.includes("apply");

const modeOf = (mode: string | null) => ({ metadata: { annotations: { [MODE_ANNOTATION]: mode } } });

async function untilProposed(object: Manifest): Promise<void> {
  await eventually(async () => expect(statusOf(await get(object)).mode).toBe("Propose"));
}

async function untilReleased(mark: Manifest): Promise<void> {
  await eventually(async () => expect((await find(mark))?.metadata.ownerReferences).toBeUndefined());
}

/** Waits until the garbage collector has done its part of a deletion. */
async function untilCollected(object: Manifest): Promise<void> {
  await eventually(async () => {
    const finalizers = (await find(object))?.metadata.finalizers ?? [];
    expect(finalizers.filter((finalizer) => finalizer === "foregroundDeletion" || finalizer === "orphan")).toEqual([]);
  });
}
