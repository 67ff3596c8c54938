import { randomBytes } from "node:crypto";
import path from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { pino } from "pino";
import { afterAll, beforeAll, expect } from "vitest";
import { userConfig } from "../../bench/users";
import {
  ApiError,
  KubernetesClient,
  known,
  type LiveObject,
  type Manifest,
  type ResourceType,
} from "../../providers/kubernetes/client";
import { type AdmissionOptions, startAdmission } from "../../src/admission/admission";
import type { Listener } from "../../src/http/server";
import { installKinds } from "../../src/operator/install";
import { eventually } from "../../src/testing/eventually";
import type { AnyKind } from "../../stacks/contract/kind";
import type { KindObject } from "../../stacks/contract/object";
import { capsuleTenantAdmission } from "../../stacks/kinds/capsule-tenant/admission/admission";
import { capsuleTenant } from "../../stacks/kinds/capsule-tenant/kind";
import { DEFAULT_USER_GROUP, NAMESPACE_DELETER, TENANT_LABEL } from "../../stacks/kinds/capsule-tenant/labels";
import { policyBindings } from "../../stacks/kinds/capsule-tenant/policies/policies";
import { enforcementProbe } from "../../stacks/kinds/capsule-tenant/policies/tenant-policy";
import type { CapsuleTenantSpec } from "../../stacks/kinds/capsule-tenant/schema";
import { tenant } from "../../stacks/kinds/tenant/kind";
import { controlPlane } from "../control-plane";
import { NAMESPACE } from "../providers/kubernetes/test-cluster";
import { bindingFor, roleFor, userNamed } from "../rights";
import { removeAdmission } from "./leftovers";

/** The kinds of Tenants as one replica serves them. */
function replica(): AnyKind[] {
  const capabilities = { ...capsuleTenant.capabilities, admission: capsuleTenantAdmission() };
  return [{ ...capsuleTenant, capabilities }, tenant];
}

/** Admission served to the shared API server, without an operator, and the users that it is about. */
export class TestAdmission {
  readonly client: KubernetesClient;
  /** The Secret's, and of nothing else. */
  readonly namespace = uniqueName("admission");
  readonly #kubeconfig: string;
  readonly #users: KubernetesClient[] = [];
  readonly #servers: Listener[] = [];
  readonly #made: Manifest[] = [];

  constructor({ kubeconfig }: { kubeconfig: string }) {
    this.#kubeconfig = kubeconfig;
    this.client = new KubernetesClient(this.#config());
  }

  async open(): Promise<void> {
    await installKinds(this.client, replica());
    await this.create(namespaceOf(this.namespace));
  }

  /** Starts a replica. */
  async start(options: Partial<AdmissionOptions> = {}): Promise<Listener> {
    const admission = await startAdmission({
      kinds: replica(),
      client: this.client,
      logger: pino({ level: process.env.KINDSTACK_LOG_LEVEL ?? "silent" }),
      port: 0,
      host: "127.0.0.1",
      namespace: this.namespace,
      ...options,
    });
    if (admission === undefined) throw new Error("no admission is served");
    this.#servers.push(admission);
    return admission;
  }

  /** Starts a replica, and waits until the API server asks it. */
  async serve(options: Partial<AdmissionOptions> = {}): Promise<Listener> {
    const admission = await this.start(options);
    const stranger = await this.user("stranger");
    await eventually(() => expectRefusal(stranger, namespaceOf(uniqueName("unowned")), "owns no tenant"));
    return admission;
  }

  /** A client of a user with a certificate of the cluster's CA. */
  async user(name: string, group: string | undefined = DEFAULT_USER_GROUP): Promise<KubernetesClient> {
    const client = new KubernetesClient(await userConfig(path.dirname(this.#kubeconfig), name, group));
    this.#users.push(client);
    return client;
  }

  /** As the administrator; it is deleted at the end. */
  async create(manifest: Manifest): Promise<LiveObject> {
    this.#made.push(manifest);
    return create(this.client, manifest);
  }

  /** A Tenant, bound to its policies as its stack would do. */
  async tenant(name: string, spec: CapsuleTenantSpec, annotations: Record<string, string> = {}): Promise<LiveObject> {
    const tenant = await this.create({ ...TENANT, metadata: { name, annotations }, spec } as Manifest);
    await this.bindPolicies(name);
    return tenant;
  }

  /** Binds a Tenant to the policies that it needs as it is now. */
  async bindPolicies(name: string): Promise<void> {
    const type = { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicyBinding" };
    for (const manifest of policyBindings(await this.findTenant(name))) {
      const { name } = manifest.metadata;
      if (name && (await this.client.get(type, name)).outcome === "absent") await this.create(manifest);
    }
  }

  /** A namespace of a tenant, with its owner as admin, as the tenant's stack would have it. */
  async tenantNamespace(name: string, tenant: string, owner: string): Promise<void> {
    await this.create(namespaceOf(name, { labels: { [TENANT_LABEL]: tenant } }));
    await this.bindOwner(name, owner);
  }

  /** The rights of a tenant's owner in one of its namespaces. */
  async bindOwner(namespace: string, owner: string): Promise<void> {
    for (const role of ["admin", NAMESPACE_DELETER]) {
      await this.create(bindingFor([userNamed(owner)], role, { name: uniqueName(role), namespace }));
    }
  }

  /** Waits until the API server enforces what a tenant restricts in its namespace. */
  async untilEnforced(namespace: string): Promise<void> {
    await eventually(() => expectRefusal(this.client, enforcementProbe(namespace), "enforced for"));
  }

  async priorityClass(name: string): Promise<void> {
    const type = { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass" };
    await this.create({ ...type, metadata: { name }, value: 1 } as Manifest);
  }

  /** Rights in a namespace that a tenant's owner does not have everywhere. */
  async grant(
    namespace: string,
    user: string,
    rule: { apiGroups?: string[]; resources: string[]; verbs: string[] },
  ): Promise<void> {
    const place = { name: uniqueName("granted"), namespace };
    const rules = [{ apiGroups: [""], ...rule }];
    for (const manifest of roleFor([userNamed(user)], rules, place)) await this.create(manifest);
  }

  /** A Tenant as the API server has it. */
  async findTenant(name: string): Promise<KindObject<CapsuleTenantSpec>> {
    return (await known(this.client.get(TENANT, name))) as LiveObject & KindObject<CapsuleTenantSpec>;
  }

  /** The namespaces of a tenant. */
  async namespacesOf(tenant: string): Promise<LiveObject[]> {
    return (await this.client.list(NAMESPACE, { labelSelector: `${TENANT_LABEL}=${tenant}` })).items;
  }

  /** Ends all replicas. */
  async stop(): Promise<void> {
    for (const server of this.#servers.splice(0)) await server.close();
  }

  async close(): Promise<void> {
    await this.stop();
    await removeAdmission(this.client);
    for (const { metadata } of this.#made.filter(({ kind }) => kind === "Tenant")) {
      for (const namespace of await this.namespacesOf(metadata.name ?? "")) {
        await this.client.delete(NAMESPACE, namespace.metadata.name);
      }
    }
    for (const { apiVersion, kind, metadata } of this.#made) {
      const type = await this.client.resourceType(apiVersion, kind);
      if (!type.namespaced) await this.client.delete(type, metadata.name ?? "");
    }
    for (const client of [...this.#users, this.client]) await client.close();
  }

  #config(): KubeConfig {
    const config = new KubeConfig();
    config.loadFromFile(this.#kubeconfig);
    return config;
  }
}

/** Admission for the tests of one file, on its own control plane: it serves before the first of them. */
export function useServedAdmission(): TestAdmission {
  const admission = new TestAdmission(controlPlane());
  beforeAll(async () => {
    await admission.open();
    await admission.serve();
  });
  afterAll(() => admission.close());
  return admission;
}

export function uniqueName(prefix: string): string {
  return `${prefix}-${randomBytes(4).toString("hex")}`;
}

/** Capsule's. */
export const TENANT = { apiVersion: "capsule.clastix.io/v1alpha1", kind: "Tenant" };

/** The object in a namespace. */
export function at(namespace: string, manifest: Manifest): Manifest {
  return { ...manifest, metadata: { ...manifest.metadata, namespace } };
}

export function namespaceOf(name: string, metadata: Manifest["metadata"] = {}): Manifest {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, ...metadata } };
}

export async function create(client: KubernetesClient, manifest: Manifest, dryRun = false): Promise<LiveObject> {
  const type = await client.resourceType(manifest.apiVersion, manifest.kind);
  return client.json("POST", pathOf(type, manifest.metadata.namespace), {
    query: { dryRun: dryRun ? "All" : undefined },
    body: manifest,
  });
}

/** A creation that must be accepted, as it is; nothing is left of it. */
export async function expectAcceptance(client: KubernetesClient, manifest: Manifest): Promise<void> {
  const { apiVersion, kind, metadata } = manifest;
  expect(await create(client, manifest, true)).toMatchObject({ apiVersion, kind, metadata });
}

export function pathOf({ apiVersion, plural }: ResourceType, namespace: string | undefined): string {
  const group = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return `${group}${namespace ? `/namespaces/${namespace}` : ""}/${plural}`;
}

/** A creation that must be refused, with this in the message; nothing is left of it when it is not. */
export async function expectRefusal(client: KubernetesClient, manifest: Manifest, message: string): Promise<void> {
  const answer = await create(client, manifest, true).then(
    () => "allowed",
    (error: unknown) => (error instanceof ApiError ? error.message : `${error}`),
  );
  if (!answer.includes(message)) throw new Error(`expected a refusal with "${message}", got: ${answer}`);
}
