import https from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Manifest } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { PAUSED_ANNOTATION } from "../../stacks/contract/annotations";
import { FINALIZER } from "../../stacks/contract/object";
import { removeUntilGone, untilCondition, untilGone, untilReady } from "../e2e/conditions";
import { NAMESPACE, namespace, postgresWriter, tenant, uniqueName } from "../e2e/manifests";
import { apply, create, edit, find, get, remove } from "../e2e/objects";
import { TestAuthority } from "../tls/test-authority";
import { useFaultOperator } from "./fault-operator";

/** Deletions wait for this webhook until it allows them. */
class SlowWebhook {
  readonly #waiting: (() => void)[] = [];
  #isOpen = true;
  #server!: https.Server;
  readonly #name = uniqueName("slow-deletions");

  async start(): Promise<void> {
    const authority = await TestAuthority.create();
    const { certificate: cert, key } = await authority.server();
    this.#server = https.createServer({ cert, key }, async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const { apiVersion, kind, request: review } = JSON.parse(Buffer.concat(chunks).toString());
      const answer = () => {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ apiVersion, kind, response: { uid: review.uid, allowed: true } }));
      };
      if (this.#isOpen) answer();
      else this.#waiting.push(answer);
    });
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const { port } = this.#server.address() as AddressInfo;
    await create({
      ...this.#reference(),
      webhooks: [
        {
          name: "slow.example.com",
          clientConfig: {
            url: `https://127.0.0.1:${port}/`,
            caBundle: Buffer.from(authority.own.certificate).toString("base64"),
          },
          rules: ["demo.yash.com", "multitenancy.codereliant.io"].map((group) => ({
            apiGroups: [group],
            apiVersions: ["*"],
            operations: ["DELETE"],
            resources: ["*"],
          })),
          sideEffects: "None",
          admissionReviewVersions: ["v1"],
          timeoutSeconds: 30,
        },
      ],
    });
  }

  /** Begins the deletion of an object. @returns what resolves when it is gone */
  async hold(object: Manifest): Promise<{ removal: Promise<void> }> {
    this.#isOpen = false;
    const removal = remove(object);
    await eventually(() => expect(this.#waiting).toHaveLength(1));
    return { removal };
  }

  allow(): void {
    this.#isOpen = true;
    for (const answer of this.#waiting.splice(0)) answer();
  }

  async stop(): Promise<void> {
    this.allow();
    await remove(this.#reference());
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #reference(): Manifest {
    return {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingWebhookConfiguration",
      metadata: { name: this.#name },
    };
  }
}

const faulty = useFaultOperator();
const webhook = new SlowWebhook();
let table: string;
beforeAll(async () => {
  table = await faulty.createTable();
  await webhook.start();
});
afterAll(() => webhook.stop());

const newWriter = () => postgresWriter(uniqueName("race"), { table });
const rowsOf = ({ metadata: { name } }: Manifest) =>
  faulty.database.query(`SELECT age FROM ${table} WHERE id = $1`, [`default/${name}`]);
const isFinalized = async (object: Manifest) => (await get(object)).metadata.finalizers?.includes(FINALIZER);
const linesAbout = ({ metadata: { name } }: Manifest) =>
  faulty.operator.log.split("\n").filter((line) => line.includes(`${name}"`));
const untilDestroyed = (object: Manifest) =>
  eventually(() => expect(linesAbout(object).filter((line) => line.includes('"destroyed"'))).not.toEqual([]));

/**
 * Begins the deletion of an object that has no finalizer yet, and lets the operator work on it only then.
 *
 * @param begun called in between
 */
async function beginDeletion(object: Manifest, begun = () => {}): Promise<{ removal: Promise<void> }> {
  const paused = { ...object, metadata: { ...object.metadata, annotations: { [PAUSED_ANNOTATION]: "true" } } };
  await apply(paused);
  await untilCondition(object, "Paused", "True"); // what the operator writes next is about the update
  const deletion = await webhook.hold(object);
  begun();
  await edit(object, { metadata: { annotations: { [PAUSED_ANNOTATION]: null } } });
  return deletion;
}

/* The API server looks for finalizers when a deletion begins, and asks the webhooks afterwards. */
describe("a deletion that has begun before the operator adds its finalizer", () => {
  it("deletes the row of an object that shares its stack", async () => {
    const writer = newWriter();
    const { removal } = await beginDeletion(writer);
    await untilReady(writer);
    expect(await isFinalized(writer)).toBe(true);
    expect(await rowsOf(writer)).toHaveLength(1);

    webhook.allow();
    await removal;
    await untilDestroyed(writer);
    expect(await find(writer)).toBeUndefined();
    expect(await rowsOf(writer)).toEqual([]);
  });

  it("deletes the namespace of an object with its own stack", async () => {
    const object = tenant(uniqueName("race"));
    const made = namespace(object.metadata.name ?? "");
    const { removal } = await beginDeletion(object);
    await untilReady(object);
    expect((await get(made)).apiVersion).toBe(NAMESPACE.apiVersion);

    webhook.allow();
    await removal;
    await untilDestroyed(object);
    expect(await find(object)).toBeUndefined();
    await untilGone(made);
  });

  it("deletes what an update makes that is under way when the object goes", async () => {
    const writer = newWriter();
    const locker = await faulty.database.connect();
    await locker.query(`BEGIN; LOCK TABLE ${table} IN SHARE MODE`);
    const { removal } = await beginDeletion(writer);
    await eventually(async () => expect(await isFinalized(writer)).toBe(true));

    webhook.allow();
    await removal;
    await locker.query("COMMIT");
    await locker.end();
    await untilDestroyed(writer);
    expect(await rowsOf(writer)).toEqual([]);
  });

  it("deletes what an update made whose record is answered only afterwards", async () => {
    const writer = newWriter();
    const { removal } = await beginDeletion(writer, () => {
      faulty.api.faults.answered = async ({ method, url }) => {
        if (method !== "PATCH" || !url.pathname.endsWith(`/${writer.metadata.name}/status`)) return true;
        webhook.allow();
        await eventually(() => expect(linesAbout(writer).join()).toContain("deleted in spite of its finalizer"));
        return true;
      };
    });
    await removal;
    await untilDestroyed(writer);
    expect(await rowsOf(writer)).toEqual([]);
  });

  it("leaves the row to a successor of the same name", async () => {
    const writer = newWriter();
    const { removal } = await beginDeletion(writer);
    await untilReady(writer);

    webhook.allow();
    await removal;
    await create({ ...writer, spec: { ...(writer.spec as object), age: 42 } });
    await untilReady(writer);
    expect(await rowsOf(writer)).toEqual([{ age: 42 }]);
    await removeUntilGone(writer);
    expect(await rowsOf(writer)).toEqual([]);
  });
});
