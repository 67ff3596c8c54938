import { describe, expect, it } from "vitest";
import type { UpdateOptions, UpdateResult } from "../../src/automation/engine";
import type { StackResource } from "../../src/automation/event-log";
import type { UpdateFailure } from "../../src/automation/failures";
import { destroyMembers, splitResult } from "../../src/runner/members";
import { postgresWriter } from "../../stacks/postgres-writer/kind";
import { updateResult } from "../automation/update-result";

const urnOf = (name: string) =>
  `urn:pulumi:s::kindstack::kindstack:g/v1:Writer$pulumi-nodejs:dynamic/test:Row::${name}`;

function resource(name: string, operation: StackResource["operation"], type = "row"): StackResource {
  return { urn: urnOf(name), type, name, operation, outputs: {} };
}

function failure(name: string | undefined, message = "refused"): UpdateFailure {
  const about = name !== undefined && { resource: name, urn: urnOf(name) };
  return { ...about, errorClass: "terminal", reason: "Refused", message };
}

const KEYS = ["ns/a", "ns/b", "ns/c"];
const outcomes = (parts: Map<string, UpdateResult>) => [...parts].map(([key, { outcome }]) => `${key} ${outcome}`);

describe("splitResult", () => {
  it("gives each object what was done to its own resources, components aside", () => {
    const resources = [
      resource("ns/a", "create", "kindstack:g/v1:Writer"),
      resource("ns/a", "create"),
      resource("ns/a/second", "update"),
      resource("ns/b", "same"),
      resource("ns/other", "create"),
    ];
    const parts = splitResult(updateResult({ resources, deleted: [resource("ns/c", "delete")] }), KEYS, undefined);
    expect([...parts.values()].map(({ changes }) => changes)).toEqual([{ create: 1, update: 1 }, {}, { delete: 1 }]);
    expect(outcomes(parts)).toEqual(["ns/a succeeded", "ns/b succeeded", "ns/c succeeded"]);
  });

  it("lets the failure of one's resource be that one's alone, when the rest was done", () => {
    const parts = splitResult(
      updateResult({ outcome: "failed", restDone: true, failures: [failure("ns/b", "no such table")] }),
      KEYS,
      undefined,
    );
    expect(outcomes(parts)).toEqual(["ns/a succeeded", "ns/b failed", "ns/c succeeded"]);
    expect(parts.get("ns/b")?.failures).toMatchObject([{ message: "no such table" }]);
    expect(parts.get("ns/a")?.failures).toEqual([]);
  });

  it("says nothing of the others when one's failure ended the update before its end", () => {
    const ended = updateResult({ outcome: "failed", restDone: false, failures: [failure("ns/b")] });
    expect(outcomes(splitResult(ended, KEYS, undefined))).toEqual(["ns/b failed"]);
  });

  it("blames an error in a program on the object whose program it was", () => {
    const ended = updateResult({ outcome: "failed", failures: [failure(undefined, "cannot read properties")] });
    expect(outcomes(splitResult(ended, KEYS, "ns/c"))).toEqual(["ns/c failed"]);
  });

  it("counts a failure without an owner for every member", () => {
    const away = updateResult({ outcome: "failed", failures: [failure(undefined, "the backend is away")] });
    const parts = splitResult(away, KEYS, undefined);
    expect(outcomes(parts)).toEqual(["ns/a failed", "ns/b failed", "ns/c failed"]);
    expect(parts.get("ns/a")?.failures).toMatchObject([{ message: "the backend is away" }]);
  });

  it("does not take what was reached for done when the update ended in a failure without an owner", () => {
    const failures = [failure("ns/b"), failure(undefined, "the state could not be saved")];
    const ended = updateResult({
      outcome: "failed",
      restDone: false,
      failures,
      resources: [resource("ns/a", "create")],
    });
    expect(outcomes(splitResult(ended, KEYS, undefined))).toEqual(["ns/b failed"]);
  });

  it("lets an interruption be everybody's", () => {
    const parts = splitResult(updateResult({ outcome: "interrupted" }), KEYS, undefined);
    expect(outcomes(parts)).toEqual(["ns/a interrupted", "ns/b interrupted", "ns/c interrupted"]);
  });
});

describe("destroyMembers", () => {
  it("of a stack without a state removes what a destroy that was cut off has left of it", async () => {
    const forgotten: string[] = [];
    const unexpected = () => Promise.reject(new Error("there is nothing to be updated"));
    const engine = {
      recorded: async () => undefined,
      forget: async (stack: string) => void forgotten.push(stack),
      up: unexpected,
      destroy: unexpected,
    };
    const parts = await destroyMembers(engine, postgresWriter, "writers.ns.0", ["ns/a"], {}, () => {});
    expect(outcomes(parts)).toEqual(["ns/a succeeded"]);
    expect(forgotten).toEqual(["writers.ns.0"]);
  });

  it("names all of an object that another version of its kind has made, so that nothing else is destroyed", async () => {
    const component = (name: string, version: string) =>
      `urn:pulumi:s::kindstack::kindstack:demo.yash.com/${version}:PostgresWriter::${name}`;
    const former = [component("ns/a", "v0"), urnOf("ns/a")];
    const named: unknown[] = [];
    const engine = {
      recorded: async () => [...former, component("ns/b", "v1"), urnOf("ns/b"), component("ns/c", "v1"), urnOf("ns/c")],
      forget: async () => {},
      up: () => Promise.reject(new Error("there is nothing to be updated")),
      destroy: async (_stack: string, options: UpdateOptions = {}) => {
        named.push(options.targets);
        return updateResult({ operation: "destroy" });
      },
    };
    await destroyMembers(engine, postgresWriter, "s", ["ns/a", "ns/b"], {}, () => {});
    expect(named).toEqual([[...former, component("ns/b", "v1")]]);
  });
});
