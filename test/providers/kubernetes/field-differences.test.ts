import { describe, expect, it } from "vitest";
import { findFieldDrift } from "../../../providers/kubernetes/field-differences";
import { withStoredData } from "../../../providers/kubernetes/object-types";
import type { LiveObject, ManagedFieldsEntry, Manifest, ObjectMeta } from "../../../providers/kubernetes/types";
import { applied, liveObject } from "../../objects";

const update = (manager: string, fieldsV1: Record<string, unknown>, subresource?: string): ManagedFieldsEntry => ({
  manager,
  operation: "Update",
  fieldsV1,
  ...(subresource && { subresource }),
});
const container = {
  'k:{"name":"web"}': { ".": {}, "f:name": {}, "f:image": {}, "f:resources": { "f:limits": { "f:cpu": {} } } },
};
const OURS = {
  "f:metadata": { "f:annotations": { "f:example.com/team": {} }, "f:finalizers": { ".": {}, 'v:"a/b"': {} } },
  "f:spec": { "f:replicas": {}, "f:template": { "f:spec": { "f:containers": container } } },
};
const manifest: Manifest = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace: "default", annotations: { "example.com/team": "a" }, finalizers: ["a/b"] },
  spec: {
    replicas: 1,
    template: { spec: { containers: [{ name: "web", image: "m:1", resources: { limits: { cpu: "1000m" } } }] } },
  },
};
const podSpec = (image: string, cpu: string) => {
  const web = { name: "web", image, resources: { limits: { cpu } } };
  return { template: { spec: { containers: [{ name: "sidecar", image: "s" }, web] } } };
};

function live(
  spec: object,
  managedFields: ManagedFieldsEntry[] = [applied("kindstack", OURS)],
  metadata: Partial<ObjectMeta> = {},
): LiveObject {
  const marks = { annotations: { "example.com/team": "a" }, finalizers: ["other", "a/b"] };
  return liveObject({
    ...{ apiVersion: "apps/v1", kind: "Deployment" },
    metadata: { name: "web", namespace: "default", ...marks, ...metadata, managedFields },
    spec: { replicas: 1, ...podSpec("m:1", "1"), ...spec },
  });
}

describe("the fields that are not as they were applied", () => {
  it("are none where the API server only writes them otherwise, and where others add something", () => {
    expect(findFieldDrift(manifest, live({}))).toEqual([]);
  });

  it("are named with both values and the manager who has set them, also by a subresource", () => {
    const left = { ...OURS, "f:spec": { "f:template": OURS["f:spec"]["f:template"] } };
    const scaling = update("autoscaler", { "f:spec": { "f:replicas": {} } }, "scale");
    const scaled = live({ replicas: 3 }, [applied("kindstack", left), scaling]);
    const drift = [{ field: "spec.replicas", wanted: 1, live: 3, by: "autoscaler" }];
    expect(findFieldDrift(manifest, scaled)).toEqual(drift);
  });

  it("are admission's where no one else has them", () => {
    const web = 'spec.template.spec.containers[name="web"]';
    expect(findFieldDrift(manifest, live(podSpec("mirror/m:1", "2")))).toEqual([
      { field: `${web}.image`, wanted: "m:1", live: "mirror/m:1", by: "admission" },
      { field: `${web}.resources.limits.cpu`, wanted: "1000m", live: "2", by: "admission" },
    ]);
  });

  it("are those that were removed, items of lists too", () => {
    const left = { ...OURS, "f:metadata": { "f:finalizers": { 'v:"c"': {} } } };
    const removed = live({}, [applied("kindstack", left)], { annotations: {}, finalizers: ["other"] });
    expect(findFieldDrift(manifest, removed)).toEqual([
      { field: 'metadata.annotations["example.com/team"]', wanted: "a" },
      { field: 'metadata.finalizers["a/b"]', wanted: "a/b" },
    ]);
  });

  it("are not those that are left to others", () => {
    expect(findFieldDrift(manifest, live({ replicas: 3 }), ["spec.replicas"])).toEqual([]);
    expect(findFieldDrift(manifest, live(podSpec("x", "3")), ["spec.template"])).toEqual([]);
  });

  it("of a Secret are named without their values", () => {
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "s" }, stringData: { password: "a" } };
    const managedFields = [update("kubectl-edit", { "f:data": { "f:password": {} } })];
    const data = { password: "Yg==" };
    const changed = liveObject({ apiVersion: "v1", kind: "Secret", data, metadata: { name: "s", managedFields } });
    expect(findFieldDrift(withStoredData(secret), changed)).toEqual([
      { field: "data.password", wanted: "[secret]", live: "[secret]", by: "kubectl-edit" },
    ]);
  });
});

describe("what the API server writes otherwise", () => {
  const drifts = (wanted: unknown, is: unknown) => {
    const [spec, found] = [wanted, is].map((field) => (field === undefined ? {} : { spec: { field } }));
    const thing = { apiVersion: "v1", kind: "Thing", metadata: { name: "a" } };
    return findFieldDrift({ ...thing, ...spec }, liveObject({ ...thing, ...found })).length > 0;
  };

  it.each<[unknown, unknown]>([
    ["1000m", "1"],
    [1, "1"],
    ["1.5Gi", "1536Mi"],
    ["0.5", "500m"],
    ["1e3", "1k"],
    ["0", "0"],
    [0, "0"],
    ["90s", "1m30s"],
    ["2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00Z"],
    [false, undefined],
    ["", undefined],
    [0, undefined],
    [null, undefined],
    [[], undefined],
    [{ a: { b: [] } }, undefined],
    [{}, {}],
    [[{ a: 1 }], [{ a: 1, protocol: "TCP" }]],
  ])("%j is %j", (wanted, is) => expect(drifts(wanted, is)).toBe(false));

  it.each<[unknown, unknown]>([
    ["1", "2"],
    [1, 2],
    ["a", "A"],
    ["1m", "1"],
    [0, 3],
    [false, true],
    ["a", undefined],
    [["a"], ["a", "b"]],
    ["ab".split(""), "ba".split("")],
    [[{ a: 1 }], [{ a: 2 }]],
    [{ a: { b: 1 } }, undefined],
  ])("%j is not %j", (wanted, is) => expect(drifts(wanted, is)).toBe(true));

  it("counts in texts, which are kept as they are", () => {
    const labelled = (team: string) =>
      liveObject({ apiVersion: "v1", kind: "ConfigMap", metadata: { labels: { team } }, data: { cpu: team } });
    const fields = findFieldDrift(labelled("1000m"), labelled("1")).map(({ field }) => field);
    expect(fields).toEqual(["data.cpu", "metadata.labels.team"]);
  });
});
