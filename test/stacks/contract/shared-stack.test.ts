import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../../providers/kubernetes/client";
import { stackName } from "../../../stacks/contract/object";
import {
  belongsTo,
  keyOfResource,
  sharedStackName,
  sharedStackNumber,
  stackOf,
} from "../../../stacks/contract/shared-stack";
import { postgresWriter } from "../../../stacks/postgres-writer/kind";
import { tenant } from "../../../stacks/tenant/kind";

function recorded(stack: string): LiveObject {
  return {
    apiVersion: "demo.yash.com/v1",
    kind: "PostgresWriter",
    metadata: { name: "alex", namespace: "school", uid: "1", resourceVersion: "1" },
    status: { stack: { name: stack, program: "p" } },
  };
}

describe("the name of a shared stack", () => {
  it("is readable, and is another one for each namespace and number", () => {
    expect(sharedStackName(postgresWriter, "school", 2)).toMatch(/^postgreswriters\.school\.2-[0-9a-f]{12}$/);
    const names = ["a", "b"].flatMap((namespace) => [0, 1].map((n) => sharedStackName(postgresWriter, namespace, n)));
    expect(new Set(names).size).toBe(4);
  });

  it("is at most 100 characters long", () => {
    expect(sharedStackName(postgresWriter, "n".repeat(63), 9999).length).toBeLessThanOrEqual(100);
  });

  it("tells its number to those of its namespace only", () => {
    const name = sharedStackName(postgresWriter, "school", 7);
    expect(sharedStackNumber(postgresWriter, "school", name)).toBe(7);
    expect(sharedStackNumber(postgresWriter, "other", name)).toBeUndefined();
    expect(sharedStackNumber(postgresWriter, "school", stackName(postgresWriter, "school/alex"))).toBeUndefined();
  });
});

describe("the stack of an object", () => {
  it("is its own for kinds that share none", () => {
    expect(stackOf(tenant, "acme", undefined)).toBe(stackName(tenant, "acme"));
  });

  it("is the first of its namespace as long as nothing is recorded", () => {
    expect(stackOf(postgresWriter, "school/alex", undefined)).toBe(sharedStackName(postgresWriter, "school", 0));
  });

  it.each([sharedStackName(postgresWriter, "school", 3), stackName(postgresWriter, "school/alex")])(
    "is the recorded one: %s",
    (name) => {
      expect(stackOf(postgresWriter, "school/alex", recorded(name))).toBe(name);
    },
  );
});

describe("a resource of a shared stack", () => {
  it.each([
    ["school/alex", "school/alex", true],
    ["school/alex", "school/alex/second", true],
    ["school/alex", "school/alexander", false],
    ["school/alex", "other/alex", false],
  ])("%s has %s: %s", (key, name, belongs) => {
    expect(belongsTo(key, name)).toBe(belongs);
    expect(keyOfResource(name) === key).toBe(belongs);
  });
});
