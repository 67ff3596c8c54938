import { type Output, secret } from "@pulumi/pulumi/output";
import {
  ComponentResource,
  type ComponentResourceOptions,
  CustomResource,
  type CustomResourceOptions,
} from "@pulumi/pulumi/resource";
import Type from "typebox";
import { KubernetesObject } from "../../providers/kubernetes/object";
import { defineKind } from "../../stacks/contract/kind";
import { Entry, Vault } from "./vault";

/* A kind whose program uses what the SDK has: a plugin, its configuration, outputs, secrets and a component. */

/** A secret that the program has itself. */
export const SALT = "the-salt-of-the-login";
/** Where the vault keeps its entries. */
export const vault = { directory: "" };

class Password extends CustomResource {
  declare readonly length: Output<number>;
  declare readonly value: Output<string>;

  constructor(name: string, inputs: { length: number }, options: CustomResourceOptions) {
    const given = { ...inputs, value: undefined };
    super("vault:index:Password", name, given, { ...options, additionalSecretOutputs: ["value"] });
  }
}

/** Two passwords that belong together. */
class KeyPair extends ComponentResource {
  readonly first: Password;
  readonly second: Password;

  constructor(name: string, length: number, options: ComponentResourceOptions) {
    super("test:index:KeyPair", name, {}, options);
    this.first = new Password(`${name}/first`, { length }, { parent: this });
    this.second = new Password(`${name}/second`, { length }, { parent: this });
    this.registerOutputs({ lengths: [this.first.length, this.second.length] });
  }
}

export const login = defineKind({
  group: "sdk.kindstack.dev",
  version: "v1",
  kind: "Login",
  plural: "logins",
  singular: "login",
  scope: "Namespaced",
  description: "A kind for tests.",
  spec: Type.Object({
    length: Type.Integer({ minimum: 1, maximum: 64, default: 16 }),
    path: Type.String({ maxLength: 63 }),
    fails: Type.Boolean({ default: false }),
    /** A label of the Secret, which all but the keys follows from. */
    label: Type.String({ default: "fine" }),
  }),
  status: Type.Object({ secrets: Type.Integer() }),
  columns: [],
  owns: [
    { apiVersion: "v1", kind: "Secret" },
    { apiVersion: "v1", kind: "ConfigMap" },
  ],
  directory: __dirname,
  program: ({ metadata, spec }, { owner }) => {
    if (spec.fails) throw new TypeError("the program fails");
    const { name, namespace = "" } = metadata;
    // Among the objects of one stack, a name is unique when it begins with the object's.
    const named = (resource: string) => `${name}/${resource}`;
    const provider = new Vault(named("vault"), vault.directory);
    const keys = new KeyPair(named("keys"), spec.length, { providers: [provider] });
    const held = new KubernetesObject(named("secret"), {
      owner,
      manifest: {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name, namespace, labels: { held: spec.label } },
        stringData: { password: keys.first.value, salt: secret(SALT) },
      },
    });
    new KubernetesObject(named("config"), {
      owner,
      manifest: {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name, namespace },
        data: { length: keys.first.length.apply(String), uid: held.uid },
      },
    });
    new Entry(named("entry"), { path: spec.path, value: keys.second.value }, { provider, dependsOn: held });
  },
  report: (_object, owned) => ({ secrets: owned.filter(({ kind }) => kind === "Secret").length }),
  capabilities: { sdkRuntime: true },
});
