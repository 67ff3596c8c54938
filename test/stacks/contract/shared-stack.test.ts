import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../../providers/kubernetes/client";
import { stackName } from "../../../stacks/contract/object";
import {
  assignmentAnnotations,
  belongsTo,
  keyOfResource,
  partitionOf,
  recordedAssignment,
  type StackAssignment,
  sharedStackAssignment,
  sharedStackName,
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

const nameOf = (partition: string, number: number) => sharedStackName(postgresWriter, { partition, number });

describe("a partition", () => {
  it("is a namespace, unless namespaces are spread over fewer", () => {
    expect(partitionOf("school", undefined)).toBe("school");
    expect(partitionOf("school", 1)).toBe("~0");
    const spread = Array.from({ length: 200 }, (_, index) => partitionOf(`namespace-${index}`, 4));
    expect([...new Set(spread)].sort()).toEqual(["~0", "~1", "~2", "~3"]);
  });
});

describe("the name of a shared stack", () => {
  it("is readable, and is another one for each partition and number", () => {
    expect(nameOf("school", 2)).toMatch(/^postgreswriters\.school\.2-[0-9a-f]{12}$/);
    expect(nameOf("~3", 2)).toMatch(/^postgreswriters\.partition-3\.2-[0-9a-f]{12}$/);
    const names = ["a", "b", "~3", "partition-3"].flatMap((partition) => [0, 1].map((n) => nameOf(partition, n)));
    expect(new Set(names).size).toBe(8);
  });

  it("is at most 100 characters long", () => {
    expect(nameOf("n".repeat(63), 9999).length).toBeLessThanOrEqual(100);
  });

  it("tells its assignment for objects of its partition only", () => {
    const name = nameOf("school", 7);
    expect(sharedStackAssignment(postgresWriter, "school", name)).toEqual({ partition: "school", number: 7 });
    expect(sharedStackAssignment(postgresWriter, "other", name)).toBeUndefined();
    expect(sharedStackAssignment(postgresWriter, "school", stackName(postgresWriter, "school/alex"))).toBeUndefined();
  });

  it("of several namespaces tells its assignment to all", () => {
    const assignment = { partition: "~12", number: 7 };
    expect(sharedStackAssignment(postgresWriter, "school", sharedStackName(postgresWriter, assignment))).toEqual(
      assignment,
    );
    // Of a namespace that is called like one of them.
    expect(sharedStackAssignment(postgresWriter, "partition-12", nameOf("partition-12", 7))?.partition).toBe(
      "partition-12",
    );
    expect(sharedStackAssignment(postgresWriter, "school", nameOf("partition-12", 7))).toBeUndefined();
  });
});

describe("the record of an assignment", () => {
  it.each<StackAssignment>([
    { partition: "school", number: 0 },
    { partition: "~0", number: 0 },
    { partition: "~17", number: 9_999 },
  ])("is read as it was written: $partition, $number", (assignment) => {
    const object = recorded("none");
    object.metadata.annotations = assignmentAnnotations(assignment);
    expect(recordedAssignment(postgresWriter, object)).toEqual(assignment);
  });
});

describe("the stack of an object", () => {
  it("is its own for kinds that share none", () => {
    expect(stackOf(tenant, "acme", undefined)).toBe(stackName(tenant, "acme"));
  });

  it("is the first of its namespace as long as nothing is recorded", () => {
    expect(stackOf(postgresWriter, "school/alex", undefined)).toBe(nameOf("school", 0));
  });

  it.each([nameOf("school", 3), nameOf("~3", 1), stackName(postgresWriter, "school/alex")])(
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
