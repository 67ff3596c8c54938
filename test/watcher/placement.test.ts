import { describe, expect, it } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import { Placement } from "../../src/watcher/placement";
import { STACK_NUMBER_ANNOTATION, sharedStackName } from "../../stacks/contract/shared-stack";
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

const place = (placement: Placement, names: string[]) => names.map((name) => placement.place(writer(name)));

describe("Placement", () => {
  it("fills the first stack, then the next", () => {
    const placement = new Placement(postgresWriter, 2);
    expect(place(placement, ["a", "b", "c", "d", "e"])).toEqual([0, 0, 1, 1, 2]);
  });

  it("moves nothing when others come or go, and fills the gaps", () => {
    const placement = new Placement(postgresWriter, 2);
    place(placement, ["a", "b", "c", "d"]);
    placement.gone("default/a");
    expect(place(placement, ["b", "c", "d", "e", "f"])).toEqual([0, 1, 1, 0, 2]);
  });

  it("gives each namespace stacks of its own", () => {
    const placement = new Placement(postgresWriter, 1);
    expect(placement.place(writer("a"))).toBe(0);
    expect(placement.place(writer("a", { namespace: "other" }))).toBe(0);
  });

  it("believes what is recorded, the status before the annotation, also of more than a stack is meant to have", () => {
    const placement = new Placement(postgresWriter, 1);
    placement.seen(writer("a", { number: "3" }));
    placement.seen(writer("b", { number: "0", stack: sharedStackName(postgresWriter, "default", 3) }));
    expect(placement.count("default", 3)).toBe(2);
    expect(place(placement, ["c", "a", "b"])).toEqual([0, 3, 3]);
    expect(placement.total("default")).toBe(3);
  });

  it.each([
    ["a stack of another namespace", { stack: sharedStackName(postgresWriter, "other", 5) }],
    ["no number", { number: "-1" }],
    ["a number that no namespace reaches", { number: "123456789" }],
    ["code", { number: "0; rm" }],
  ])("does not believe a record that says %s", (_, record) => {
    expect(new Placement(postgresWriter).place(writer("a", record))).toBe(0);
  });

  it("counts an object once, whatever it is told of it", () => {
    const placement = new Placement(postgresWriter, 2);
    placement.place(writer("a"));
    placement.seen(writer("a", { number: "0" }));
    placement.seen(writer("a", { number: "1" }));
    expect([placement.count("default", 0), placement.count("default", 1)]).toEqual([0, 1]);
    placement.gone("default/a");
    placement.gone("default/a");
    expect(placement.count("default", 1)).toBe(0);
  });
});
