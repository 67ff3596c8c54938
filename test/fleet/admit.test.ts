import { describe, expect, it } from "vitest";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import { ROW_STUB } from "../../providers/postgres/row";
import { type Admitting, admit } from "../../src/fleet/admit";
import type { PortableResource } from "../../src/fleet/artefact";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { postgresWriter } from "../../stacks/kinds/postgres-writer/kind";
import { memcachedObject } from "../objects";

const uid = "11111111-1111-1111-1111-111111111111";
const live = memcachedObject({ name: "web", namespace: "team-a", uid });
const cluster = { name: "prod", uid: "22222222-2222-2222-2222-222222222222" };
const providers = { [OBJECT_STUB]: 1, [ROW_STUB]: 1 };
const admitting: Admitting = { kind: memcached, live, cluster, providers };

const manifest = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace: "team-a" },
  spec: { replicas: 1 },
};
const owner = { uid: "99999999-9999-9999-9999-999999999999", description: "Memcached.cache.example.com/team-b/other" };
const TYPE = "pulumi-nodejs:dynamic/kubernetes:Deployment";
const resource = (changes: Partial<PortableResource> = {}, inputs: object = {}): PortableResource => ({
  ...{ type: TYPE, name: "web", provider: OBJECT_STUB, inputs: { manifest, owner, ...inputs } },
  ...changes,
});
const { provider: _, ...withoutProvider } = resource();
const row = (inputs: object = {}): PortableResource => ({
  ...{ type: "pulumi-nodejs:dynamic/postgres:Row", name: "row", provider: ROW_STUB },
  inputs: { table: "students", key: { id: "team-a/web" }, values: { age: 1 }, owner, ...inputs },
});
const inputsOf = (admitted: ReturnType<typeof admit>) => admitted.resources.map(({ inputs }) => inputs);

describe("what a program is said to declare", () => {
  it("belongs to the object that it is said to be of, whatever it says", () => {
    const own = { uid, description: "Memcached.cache.example.com/team-a/web" };
    expect(inputsOf(admit(admitting, [resource()]))).toMatchObject([{ owner: own }]);
    const [inputs] = inputsOf(admit({ ...admitting, kind: postgresWriter }, [row()])) as [{ owner: object }];
    expect(inputs.owner).toMatchObject({ uid: own.uid, cluster, namespace: "team-a" });
  });

  it("may leave other fields to others than the installed kind does", () => {
    const ignoring = { owner: { ...owner, ignoreFields: ["Deployment:spec.replicas"] } };
    const own = { uid, ignoreFields: ["Deployment:spec.replicas"] };
    expect(inputsOf(admit(admitting, [resource({}, ignoring)]))).toMatchObject([{ owner: own }]);
  });

  const refused = "inputs that its provider does not take";
  const noAlias = [resource(), resource({ name: "b", aliasParents: { 0: 0 } })];
  const initial = { manifest: { ...manifest, kind: "Secret" }, fieldManager: "x" };
  it.each<[string, PortableResource[], string]>([
    ["its own parent", [resource({ parent: 0 })], "not declared before it"],
    ["a parent that comes later", [resource({ parent: 1 }), resource({ name: "b" })], "not declared before it"],
    ["a dependency on itself", [resource({ dependsOn: [0] })], "not declared before it"],
    ["a former parent that comes later", [resource({ aliasParents: { 0: 7 } })], "not declared before it"],
    ["a parent of no alias", noAlias, "alias that it does not have"],
    ["another type than its manifest's", [resource({ type: `${TYPE}Set` })], "has the type"],
    ["a provider as a component", [{ type: "pulumi:providers:aws", name: "aws" }], "has the type"],
    ["the stack", [{ type: "pulumi:pulumi:Stack", name: "s" }], "has the type"],
    ["code to run", [resource({ provider: "exports.handler = () => process.exit()" })], "provider of the kind's own"],
    ["no provider", [withoutProvider], "provider of the kind's own"],
    ["an object in another namespace", [elsewhere({ namespace: "kube-system" })], "is in the namespace kube-system"],
    ["marks that are no texts", [elsewhere({ labels: { a: { b: 1 } } })], refused],
    ["no name", [elsewhere({ name: undefined })], refused],
    ["an input that no provider has", [resource({}, { force: true })], refused],
    ["another stub among its inputs", [resource({}, { __provider: ROW_STUB })], refused],
    ["an output of the SDK's", [spec({ a: { __pulumiOutput: true } })], '"__pulumiOutput"'],
    ["a prototype", [spec(JSON.parse('{"__proto__":{"polluted":true}}'))], '"__proto__"'],
    ["depth", [spec(nested(70))], "nested more than 64 levels deep"],
    ["another object at its creation", [resource({}, { initial })], "is created as another object"],
  ])("is refused with %s", (_what, declared, why) => {
    expect(() => admit(admitting, declared)).toThrow(why);
    expect(({} as { polluted?: true }).polluted).toBeUndefined();
  });

  it("is refused where a provider has another version, or none, or one of an inherited name", () => {
    for (const versions of [{ [OBJECT_STUB]: 2 }, { [OBJECT_STUB]: null }, {}]) {
      expect(() => admit({ ...admitting, providers: versions }, [resource()])).toThrow("another version");
    }
  });

  it("is left out where the installed kind has nothing of the sort, with all below it, and the rest is previewed", () => {
    const secret = resource({
      ...{ name: "a", type: "pulumi-nodejs:dynamic/kubernetes:Secret" },
      inputs: { manifest: { ...manifest, apiVersion: "v1", kind: "Secret" }, owner },
    });
    const admitted = admit(admitting, [
      secret,
      resource({ name: "below", parent: 0 }),
      row(),
      resource({ name: "kept", dependsOn: [0, 2] }),
      resource({ name: "last", dependsOn: [3] }),
    ]);
    expect(admitted.resources.map(({ name, dependsOn }) => [name, dependsOn])).toEqual([
      ["kept", undefined],
      ["last", [0]],
    ]);
    expect(admitted.notPreviewed).toEqual([
      '"a" is a Secret of v1, which the installed Memcached does not own',
      '"below" is below what is not previewed',
      '"row" is a row, and the installed Memcached has none',
    ]);
  });

  it("reaches the engine as texts, also where Pulumi would read a file or call a resource", () => {
    const signature = "4dabf18193072939515e22adb298388d";
    const asset = { [signature]: "c44067f5952c0a294b673a41bacd8c17", path: "/etc/passwd" };
    const text = JSON.stringify(inputsOf(admit(admitting, [spec(asset)])));
    expect(text).toContain(`"literal:${signature}"`);
    expect(text).not.toContain(`"${signature}"`);
  });
});

function elsewhere(metadata: object): PortableResource {
  return resource({}, { manifest: { ...manifest, metadata: { ...manifest.metadata, ...metadata } } });
}

function spec(value: object): PortableResource {
  return resource({}, { manifest: { ...manifest, spec: value } });
}

function nested(depth: number): object {
  return depth === 0 ? {} : { a: nested(depth - 1) };
}
