import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect } from "vitest";
import { KubernetesClient, known, type LiveObject, type ResourceType } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { APPROVAL_TYPE, type ApprovalSpec, type DecisionOnPlan } from "../../stacks/contract/approval";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { MODE_ANNOTATION, type Mode } from "../../stacks/contract/mode";
import { PLAN_TYPE, type Plan } from "../../stacks/contract/plan";
import { controlPlane } from "../control-plane";
import { roleFor, userNamed } from "../rights";
import { COMPILER_OPTIONS } from "./compiler-options";
import { CONFIG_MAP, NAMESPACE, uniqueName } from "./manifests";
import { client } from "./objects";
import { type RunSettings, type TestOperator, useOperator } from "./operator";

/*
 * An operator, a kind whose program tests edit, a namespace in which changes wait, and two users: one may do all with objects
 * but approve, the other may approve and nothing else.
 */

const ROOT = path.resolve(__dirname, "../..");

/** A program that makes a ConfigMap with the object's text and the program's edition, and another one where it is asked to. */
const kindModule = (group: string, edition: string, more: string) => `import { defineKind, Type } from "kindstack";
import { KubernetesObject } from "kindstack/providers/kubernetes";
export const note = defineKind({
  group: ${JSON.stringify(group)}, version: "v1", kind: "Note", plural: "notes", singular: "note", scope: "Namespaced",
  description: "", spec: Type.Object({ text: Type.String(), extra: Type.Optional(Type.Boolean()), ${more} }), status: Type.Object({}),
  columns: [], owns: [{ apiVersion: "v1", kind: "ConfigMap" }], directory: __dirname, report: () => ({}), capabilities: {},
  program({ metadata: { name, namespace = "" }, spec }, { owner }) {
    const make = (name: string, data: Record<string, string>) =>
      new KubernetesObject(name, { owner, manifest: { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data } });
    make(name, { text: spec.text, edition: ${JSON.stringify(edition)} });
    if (spec.extra) make(name + "-extra", { text: spec.text });
  },
});
`;

export class Proposals {
  readonly group = `${uniqueName("notes")}.example.com`;
  readonly type: ResourceType = { apiVersion: `${this.group}/v1`, kind: "Note", plural: "notes", namespaced: true };
  readonly namespace = uniqueName("proposals");
  readonly operator: TestOperator;
  readonly #directory = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-notes-"));
  #clients: KubernetesClient[] = [];
  /** May do all with objects and namespaces. */
  owner = client;
  /** May approve plans, and nothing else. */
  approver = client;

  constructor(settings: RunSettings = {}) {
    this.edition("first");
    fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(this.#directory, "node_modules"));
    const kinds = ["--watch", "--kinds", this.folder];
    // The operator lists the namespace when it starts: it would see a later one by a watch, and apply what came before that.
    const metadata = { name: this.namespace, annotations: { [MODE_ANNOTATION]: "Propose" } };
    beforeAll(() => client.create({ apiVersion: "v1", kind: "Namespace", metadata }));
    this.operator = useOperator({ ...settings, args: [...kinds, ...(settings.args ?? [])] });
    beforeAll(() => this.#open());
    afterAll(() => this.#close());
  }

  /** Of the kind. */
  get folder(): string {
    return path.join(this.#directory, "note");
  }

  /** Gives the kind another program. @param more of its schema */
  edition(edition: string, more = ""): void {
    fs.mkdirSync(this.folder, { recursive: true });
    fs.writeFileSync(path.join(this.folder, "tsconfig.json"), JSON.stringify({ compilerOptions: COMPILER_OPTIONS }));
    fs.writeFileSync(path.join(this.folder, "index.ts"), kindModule(this.group, edition, more));
  }

  /** Sets the mode of the namespace, as its administrator may. */
  async setMode(mode: Mode): Promise<void> {
    const annotations = { [MODE_ANNOTATION]: mode };
    await client.mergePatch(NAMESPACE, this.namespace, undefined, { metadata: { annotations } });
  }

  async write(name: string, spec: { text: string; extra?: boolean }, mode?: Mode): Promise<LiveObject> {
    const annotations = mode && { [MODE_ANNOTATION]: mode };
    const metadata = { name, namespace: this.namespace, ...(annotations && { annotations }) };
    const { apiVersion, kind } = this.type;
    return (await this.owner.apply({ apiVersion, kind, metadata, spec }, { fieldManager: "owner" })).object;
  }

  find(name: string): Promise<LiveObject | undefined> {
    return known(client.get(this.type, name, this.namespace));
  }

  /** What the object has made. */
  async made(name: string): Promise<Record<string, string> | undefined> {
    const map = await known(client.get(CONFIG_MAP, name, this.namespace));
    return map?.data as Record<string, string> | undefined;
  }

  /** Changes it as nobody has approved. */
  async drift(name: string, data: Record<string, string>): Promise<void> {
    await client.mergePatch(CONFIG_MAP, name, this.namespace, { data });
  }

  async plan(name: string): Promise<Plan | undefined> {
    const { items } = await client.list(PLAN_TYPE, { namespace: this.namespace });
    return (items as Plan[]).find(({ spec: { object } }) => object.kind === "Note" && object.name === name);
  }

  async synced(name: string) {
    const object = await this.find(name);
    return object && findCondition(statusOf(object).conditions, "Synced");
  }

  /** Waits until a plan of the object's present generation waits; another than `former`. */
  untilWaiting(name: string, former?: Plan): Promise<Plan> {
    return eventually(async () => {
      const [object, plan] = [await this.find(name), await this.plan(name)];
      const synced = object && findCondition(statusOf(object).conditions, "Synced");
      const isCurrent = plan !== undefined && plan.spec.object.generation === object?.metadata.generation;
      const isTold = synced?.reason === "WaitsForApproval" && synced.observedGeneration === object?.metadata.generation;
      if (!isCurrent || !isTold || plan.spec.digest === former?.spec.digest) {
        throw new Error(`nothing new waits: ${JSON.stringify({ status: object?.status, plan })}`);
      }
      return plan;
    });
  }

  untilSynced(name: string): Promise<LiveObject> {
    return eventually(async () => {
      const object = await this.find(name);
      const synced = object && findCondition(statusOf(object).conditions, "Synced");
      if (synced?.status !== "True" || synced.observedGeneration !== object?.metadata.generation) {
        throw new Error(`it is not synced: ${JSON.stringify(object?.status)}`);
      }
      return object as LiveObject;
    });
  }

  async decide(plan: Plan, decision: DecisionOnPlan = "Approve", spec: Partial<ApprovalSpec> = {}): Promise<void> {
    const object = { kind: `notes.${this.group}`, name: plan.spec.object.name };
    const named = spec.digests === undefined ? { object, digest: plan.spec.digest } : {};
    await this.approver.create({
      ...APPROVAL_TYPE,
      metadata: { generateName: "decision-", namespace: this.namespace },
      spec: { ...named, decision, approver: "jane", ...spec },
    });
  }

  async #open(): Promise<void> {
    this.owner = await this.#user("olga", [
      {
        apiGroups: [this.group, "kindstack.dev"],
        resources: ["*"],
        verbs: ["get", "list", "create", "patch", "update", "delete"],
      },
    ]);
    this.approver = await this.#user("jane", [
      { apiGroups: ["kindstack.dev"], resources: ["plans"], verbs: ["approve"] },
      { apiGroups: ["kindstack.dev"], resources: ["approvals"], verbs: ["create"] },
    ]);
    // Policies take a moment to be in force.
    await eventually(async () => expect(await this.#refusal()).toContain("takes the right to approve"));
  }

  #refusal(): Promise<string> {
    const spec = { digests: [`sha256:${"0".repeat(64)}`], decision: "Approve", approver: "olga" };
    const metadata = { generateName: "probe-", namespace: this.namespace };
    return this.owner.create({ ...APPROVAL_TYPE, metadata, spec }).then(String, String);
  }

  async #user(name: string, rules: object[]): Promise<KubernetesClient> {
    const place = { name, namespace: this.namespace };
    for (const manifest of roleFor([userNamed(name)], rules, place)) await client.create(manifest);
    const config = new KubeConfig();
    config.loadFromFile(controlPlane().kubeconfig);
    config.users = config.users.map((known) => ({ ...known, impersonateUser: name }));
    const made = new KubernetesClient(config);
    this.#clients.push(made);
    return made;
  }

  async #close(): Promise<void> {
    await client.mergePatch(NAMESPACE, this.namespace, undefined, { metadata: { annotations: null } });
    const { items } = await client.list(this.type, { namespace: this.namespace });
    for (const { metadata } of items) {
      await client.mergePatch(this.type, metadata.name, this.namespace, { metadata: { annotations: null } });
      await client.delete(this.type, metadata.name, this.namespace);
    }
    await eventually(async () => {
      expect((await client.list(this.type, { namespace: this.namespace })).items).toEqual([]);
    });
    for (const one of this.#clients) await one.close();
    await client.delete(NAMESPACE, this.namespace);
    const definitions = await client.resourceType("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    await client.delete(definitions, `notes.${this.group}`);
    fs.rmSync(this.#directory, { recursive: true });
  }
}
