import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { Assignments } from "../../src/runner/assignments";
import { assignmentAnnotations, STACK_NUMBER_ANNOTATION, sharedStackName } from "../../stacks/contract/shared-stack";
import { postgresWriter } from "../../stacks/postgres-writer/kind";

function writer(name: string, { namespace = "default", number, stack }: Record<string, string> = {}): LiveObject {
  return {
    apiVersion: "demo.yash.com/v1",
    kind: "PostgresWriter",
    metadata: {
      name,
      namespace,
      uid: `uid-${name}`,
      resourceVersion: "1",
      ...(number !== undefined && { annotations: { [STACK_NUMBER_ANNOTATION]: number } }),
    },
    ...(stack !== undefined && { status: { stack: { name: stack, program: "p" } } }),
  };
}

const stackIn = (partition: string, number: number) => sharedStackName(postgresWriter, { partition, number });
const place = (assignments: Assignments, names: string[]) =>
  names.map((name) => {
    const { partition, number } = assignments.assign(writer(name));
    expect(partition).toBe("default");
    return number;
  });

describe("Assignments", () => {
  it("fills the first stack, then the next", () => {
    const assignments = new Assignments(postgresWriter, { limit: 2 });
    expect(place(assignments, ["a", "b", "c", "d", "e"])).toEqual([0, 0, 1, 1, 2]);
  });

  it("moves nothing when others come or go, and fills the gaps", () => {
    const assignments = new Assignments(postgresWriter, { limit: 2 });
    place(assignments, ["a", "b", "c", "d", "e"]);
    assignments.gone("default/a");
    assignments.gone("default/d");
    expect(place(assignments, ["b", "c", "e", "f", "g", "h", "i"])).toEqual([0, 1, 2, 0, 1, 2, 3]);
  });

  it("gives each namespace stacks of its own", () => {
    const assignments = new Assignments(postgresWriter, { limit: 1 });
    expect(assignments.assign(writer("a"))).toEqual({ partition: "default", number: 0 });
    expect(assignments.assign(writer("a", { namespace: "other" }))).toEqual({ partition: "other", number: 0 });
  });

  it("believes what is recorded, the status before the annotation, also of more than a stack is meant to have", () => {
    const assignments = new Assignments(postgresWriter, { limit: 1 });
    assignments.seen(writer("a", { number: "1" }));
    assignments.seen(writer("b", { number: "0", stack: stackIn("default", 1) }));
    expect(place(assignments, ["c", "a", "b", "d"])).toEqual([0, 1, 1, 2]);
    expect(assignments.total("default")).toBe(4);
  });

  it("does not let annotations fill a stack that has no more room", () => {
    const assignments = new Assignments(postgresWriter, { limit: 2 });
    const names = ["a", "b", "c", "d"];
    for (const name of names) assignments.seen(writer(name, { number: "3" }));
    const places = names.map((name) => assignments.assign(writer(name, { number: "3" })).number);
    expect(places).toEqual([3, 3, 0, 0]);
  });

  it.each([
    ["a stack of another namespace", { stack: stackIn("other", 5) }],
    ["no number", { number: "-1" }],
    ["a number that no namespace reaches", { number: "123456789" }],
    ["code", { number: "0; rm" }],
  ])("does not believe a record that says %s", (_, record) => {
    expect(new Assignments(postgresWriter).assign(writer("a", record))).toEqual({ partition: "default", number: 0 });
  });

  it("counts an object once, whatever it is told of it", () => {
    const assignments = new Assignments(postgresWriter, { limit: 1 });
    assignments.assign(writer("a"));
    assignments.seen(writer("a", { number: "0" }));
    assignments.seen(writer("a", { number: "1" }));
    expect(assignments.total("default")).toBe(1);
    expect(place(assignments, ["b", "c"])).toEqual([0, 2]);
    assignments.gone("default/a");
    assignments.gone("default/a");
    expect(assignments.total("default")).toBe(2);
    expect(place(assignments, ["d", "e"])).toEqual([1, 3]);
  });
});

describe("Assignments over partitions", () => {
  const one = { partitions: 1, limit: 2 };

  it("fills the stacks of a partition with objects of all its namespaces", () => {
    const assignments = new Assignments(postgresWriter, one);
    const places = ["a", "b", "c"].map((namespace) => assignments.assign(writer("alex", { namespace })));
    expect(places.map(({ partition, number }) => `${partition} ${number}`)).toEqual(["~0 0", "~0 0", "~0 1"]);
    expect(["a", "b", "c"].map((namespace) => assignments.total(namespace))).toEqual([1, 1, 1]);
  });

  it("leaves objects in the stacks in which they are, whatever the number was then", () => {
    const assignments = new Assignments(postgresWriter, one);
    assignments.seen(writer("before", { stack: stackIn("default", 0) }));
    assignments.seen(writer("wider", { stack: stackIn("~7", 0) }));
    const begun = writer("begun");
    begun.metadata.annotations = assignmentAnnotations({ partition: "~7", number: 1 });
    assignments.seen(begun);
    const partitions = ["before", "wider", "begun", "new"].map((name) => assignments.assign(writer(name)).partition);
    expect(partitions).toEqual(["default", "~7", "~7", "~0"]);
    expect(assignments.partitionOf({ key: "default/wider", namespace: "default" })).toBe("~7");
    expect(assignments.partitionOf({ key: "default/unseen", namespace: "default" })).toBe("~0");
    const without = new Assignments(postgresWriter);
    without.seen(writer("wider", { stack: stackIn("~7", 0) }));
    expect(without.partitionOf({ key: "default/wider", namespace: "default" })).toBe("~7");
    expect(without.partitionOf({ key: "default/unseen", namespace: "default" })).toBe("default");
  });
});
