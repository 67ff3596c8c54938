import { describe, expect, it } from "vitest";
import type { LiveObject, ManagedFieldsEntry, Manifest } from "../../providers/kubernetes/client";
import { DriftBackoff, MAX_REPAIRS_PER_MINUTE } from "../../src/controller/drift-backoff";
import { describeFieldConflict } from "../../src/controller/field-conflict";
import { applied } from "../objects";

const MINUTE = 60_000;
const START = Date.UTC(2026, 0, 1);

/** A pace that has seen a conflict begin: one repair too many, one second after the other. */
function inConflict(): { pace: DriftBackoff; now: number } {
  const pace = new DriftBackoff();
  for (let repair = 0; repair <= MAX_REPAIRS_PER_MINUTE; repair++) pace.count(START + repair * 1_000);
  return { pace, now: START + MAX_REPAIRS_PER_MINUTE * 1_000 };
}

describe("repairs", () => {
  it("are no conflict up to the limit of a minute, and wait for nothing", () => {
    const pace = new DriftBackoff();
    for (let repair = 0; repair < MAX_REPAIRS_PER_MINUTE; repair++) {
      expect(pace.count(START + repair)).toBe(false);
      expect(pace.notBefore).toBe(START + repair);
    }
  });

  it("are no conflict when they are spread over time, however many there are", () => {
    const pace = new DriftBackoff();
    const conflicts = Array.from({ length: 100 }, (_, repair) =>
      pace.count(START + repair * (MINUTE / MAX_REPAIRS_PER_MINUTE)),
    );
    expect(conflicts).not.toContain(true);
  });

  it("beyond the limit are a conflict, and the next one has to wait", () => {
    const { pace, now } = inConflict();
    expect(pace.notBefore).toBe(now + 10_000);
  });

  it("of a conflict wait twice as long each time, up to five minutes", () => {
    const { pace } = inConflict();
    const delays = Array.from({ length: 6 }, () => {
      const at = pace.notBefore;
      expect(pace.count(at)).toBe(true);
      return (pace.notBefore - at) / 1_000;
    });
    expect(delays).toEqual([20, 40, 80, 160, 300, 300]);
  });

  it("of which none is free wait from the first one on, which begins again after a minute without one", () => {
    const pace = new DriftBackoff(0);
    expect(pace.notBefore).toBe(Number.NEGATIVE_INFINITY);
    expect(pace.count(START)).toBe(true);
    expect(pace.notBefore).toBe(START + 10_000);
    pace.count(START + 10_000);
    expect(pace.notBefore).toBe(START + 30_000);
    const later = pace.settledAt;
    pace.count(later);
    expect(pace.notBefore).toBe(later + 10_000);
  });

  it("are settled when a minute has passed in which one could have been made and none was called for", () => {
    const { pace, now } = inConflict();
    expect(pace.settledAt).toBe(now + 10_000 + MINUTE);
    expect(pace.count(pace.settledAt - 1)).toBe(true);
  });

  it("after a conflict is settled begin again", () => {
    const { pace } = inConflict();
    const later = pace.settledAt;
    expect(pace.count(later)).toBe(false);
    expect(pace.notBefore).toBe(later);
  });
});

describe("describeFieldConflict", () => {
  const manifest: Manifest = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "cache", namespace: "default", labels: { team: "a" }, finalizers: ["example.com/a"] },
    spec: {
      replicas: 1,
      template: { spec: { containers: [{ name: "memcached", image: "m:1", ports: [{ containerPort: 1 }] }] } },
    },
  };
  const live = (...managedFields: ManagedFieldsEntry[]): LiveObject => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "cache", namespace: "default", uid: "uid", resourceVersion: "1", managedFields },
  });
  const update = (manager: string, fieldsV1: Record<string, unknown>): ManagedFieldsEntry => ({
    manager,
    operation: "Update",
    fieldsV1,
  });
  const describeOf = (...managedFields: ManagedFieldsEntry[]) =>
    describeFieldConflict({ edited: [live(...managedFields)], deleted: [] }, [manifest]);

  it("names the field and the manager who took it", () => {
    expect(describeOf(applied("kindstack", {}), update("autoscaler", { "f:spec": { "f:replicas": {} } }))).toBe(
      "Deployment cache: spec.replicas is also set by autoscaler",
    );
  });

  it("names items of lists by what tells them apart, also by what the server filled in", () => {
    const port = { 'k:{"containerPort":1,"protocol":"TCP"}': { ".": {}, "f:containerPort": {} } };
    const container = { 'k:{"name":"memcached"}': { ".": {}, "f:image": {}, "f:ports": port } };
    const fields = { "f:spec": { "f:template": { "f:spec": { "f:containers": container } } } };
    const path = 'spec.template.spec.containers[name="memcached"]';
    expect(describeOf(update("someone", fields))).toBe(
      [
        `Deployment cache: ${path}.image is also set by someone`,
        `Deployment cache: ${path}.ports[containerPort=1,protocol="TCP"].containerPort is also set by someone`,
      ].join("; "),
    );
    expect(describeOf(update("someone", { "f:metadata": { "f:finalizers": { 'v:"example.com/a"': {} } } }))).toBe(
      'Deployment cache: metadata.finalizers["example.com/a"] is also set by someone',
    );
  });

  it("leaves out what Kindstack still holds, what it never sets, and statuses", () => {
    const shared = { "f:metadata": { "f:labels": { "f:team": {} } } };
    const description = describeOf(
      applied("kindstack", shared),
      update("someone", { ...shared, "f:spec": { "f:replicas": {}, "f:paused": {} } }),
      update("kubectl", { "f:metadata": { "f:annotations": { ".": {}, "f:note": {} } } }),
      { ...update("kube-controller-manager", { "f:status": { "f:replicas": {} } }), subresource: "status" },
    );
    expect(description).toBe("Deployment cache: spec.replicas is also set by someone");
  });

  it("says so when no one holds what was taken away", () => {
    expect(describeOf(applied("kindstack", {}))).toBe("another client removes fields after each repair");
  });

  it("names what is deleted again and again", () => {
    expect(describeFieldConflict({ edited: [], deleted: ["apps/v1/Deployment/default/cache"] }, [manifest])).toBe(
      "apps/v1/Deployment/default/cache is deleted by another client",
    );
  });
});
