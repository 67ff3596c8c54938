import { describe, expect, it } from "vitest";
import type { Manifest } from "../../../providers/kubernetes/client";
import { provider } from "../../../providers/kubernetes/object";
import type { ObjectInputs, ObjectOutputs } from "../../../providers/kubernetes/object-inputs";
import { acme, globex } from "../../objects";

const manifest = (apiVersion: string, kind: string, rest: object, metadata: object = {}): Manifest => ({
  apiVersion,
  kind,
  metadata: { name: "a", namespace: "default", ...metadata },
  ...rest,
});
const pod = (image: string, labels = {}) =>
  manifest("v1", "Pod", { spec: { containers: [{ name: "a", image }] } }, { labels });
const namespace = manifest("v1", "Namespace", {});
const deployment = (spec: object) => manifest("apps/v1", "Deployment", { spec });
const binding = (role: string, subjects: string[] = []) =>
  manifest("rbac.authorization.k8s.io/v1", "RoleBinding", { roleRef: { name: role }, subjects });
const configMap = (data: object, metadata = {}) => manifest("v1", "ConfigMap", { data }, metadata);

/** What the state records of a manifest that was applied. */
const outputs = (applied: Manifest, more: Partial<ObjectOutputs> = {}): ObjectOutputs => ({
  manifest: applied,
  owner: acme,
  uid: "uid",
  resourceVersion: "1",
  created: true,
  fields: "digest",
  drifted: false,
  ...more,
});
const diff = (olds: Manifest, news: Manifest, more: Partial<ObjectInputs> = {}) =>
  provider.diff("id", outputs(olds), { manifest: news, owner: acme, ...more });

const inPlace = { changes: true };
/** Both have one name, so the old one has to go first. */
const replacement = { changes: true, replaces: ["manifest"], deleteBeforeReplace: true };

it("check names what is missing", async () => {
  const { failures } = await provider.check({}, { manifest: { kind: "ConfigMap", metadata: {} } });
  const missing = failures.map(({ property }) => property);
  expect(missing).toEqual(["manifest.apiVersion", "manifest.metadata.name", "owner.uid"]);
});

describe("diff", () => {
  it.each<[string, Manifest, Manifest]>([
    ["spec", pod("a:1"), pod("a:2")],
    ["spec.containers[0].image", pod("a:1"), pod("a:2")],
    ['spec.containers[name="a"].image', pod("a:1"), pod("a:2")],
    ["spec.selector", deployment({ selector: { app: "a" } }), deployment({ selector: { app: "b" } })],
    ["roleRef", binding("admin"), binding("edit")],
    ['data["a.b"]', configMap({ "a.b": "1" }), configMap({ "a.b": "2" })],
    ["*", configMap({ a: "1" }), configMap({ a: "2" })],
  ])("replaces the object for a change of %s where the program says so, and only there", async (path, olds, news) => {
    expect(await diff(olds, news, { replaceOnChanges: ["other.field", path] })).toEqual(replacement);
    expect(await diff(olds, news, { replaceOnChanges: ["other.field"] })).toEqual(inPlace);
    expect(await diff(olds, news)).toEqual(inPlace);
  });

  it.each<[Manifest, unknown, string]>([
    [pod("a:1"), ["spec..image"], '"spec..image" must be a field, such as spec.selector, or *'],
    [pod("a:1"), ["spec", 3], "3 must be a field, such as spec.selector, or *"],
    [pod("a:1"), "spec", "must be a list of fields"],
    [namespace, ["*"], "a Namespace holds data, and is not replaced. Make a second one, of another name"],
  ])("refuses to replace %j on changes of %j", async (object, replaceOnChanges, reason) => {
    const { failures } = await provider.check({}, { manifest: object, owner: acme, replaceOnChanges });
    expect(failures).toEqual([{ property: "replaceOnChanges", reason }]);
  });

  it("refuses to delete what holds data before it makes its own", async () => {
    const volume = manifest("v1", "PersistentVolumeClaim", {});
    const { failures } = await provider.check({}, { manifest: volume, owner: acme, adopt: "replace" });
    expect(failures).toMatchObject([{ property: "adopt", reason: expect.stringContaining("holds data") }]);
  });

  it.each<[string, Manifest, Manifest]>([
    ["a Pod's label", pod("a:1"), pod("a:1", { team: "a" })],
    ["a Deployment's size", deployment({ replicas: 1 }), deployment({ replicas: 2 })],
    ["a Deployment's template", deployment({ template: { a: 1 } }), deployment({ template: { a: 2 } })],
    ["a RoleBinding's subjects", binding("admin", ["a"]), binding("admin", ["a", "b"])],
    ["a ConfigMap's data", configMap({ a: "1" }), configMap({ a: "2" })],
  ])("changes %s in place", async (_, olds, news) => {
    expect(await diff(olds, news)).toEqual(inPlace);
  });

  it("replaces nothing for what is not known yet: what the object depends on is replaced first", async () => {
    const unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9" as unknown as Manifest; // as the engine writes it
    expect(await diff(binding("admin"), unknown)).toEqual(inPlace);
  });

  it.each<[string, Manifest]>([
    ["name", configMap({}, { name: "b" })],
    ["namespace", configMap({}, { namespace: "other" })],
  ])("makes another object for another %s before the old one goes", async (_, news) => {
    expect(await diff(configMap({}), news)).toEqual({ changes: true, replaces: ["manifest"] });
  });

  it("takes another version of the same API for the same object", async () => {
    const of = (version: string) => manifest(`apps/${version}`, "Deployment", {});
    expect(await diff(of("v1beta1"), of("v1"))).toEqual(inPlace);
  });

  it("finds nothing to do when nothing changed, in whatever order the fields come", async () => {
    expect(await diff(configMap({ a: "1", b: "2" }), configMap({ b: "2", a: "1" }))).toEqual({ changes: false });
  });

  it("finds something to do when a refresh found drift, or the object goes to another owner", async () => {
    const same = configMap({});
    const changes = async (olds: ObjectOutputs, owner = acme) =>
      (await provider.diff("id", olds, { manifest: same, owner })).changes;
    expect(await changes(outputs(same, { drifted: true }))).toBe(true);
    expect(await changes(outputs(same), globex)).toBe(true);
    expect(await changes(outputs(same))).toBe(false);
  });
});
