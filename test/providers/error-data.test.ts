import { expect, it } from "vitest";
import { dataOf, errorOf } from "../../providers/error-data";
import { failureOf, initializationOf, PendingError, RetryableError, TerminalError } from "../../providers/errors";
import { NotRegisteredError } from "../../providers/registration";

const object = { apiVersion: "v1", kind: "Secret", metadata: { name: "a", uid: "u" } };

it.each([
  new TerminalError("Conflict", "held by another", { object }),
  new RetryableError("Timeout", "too slow", { dependency: "table a.b" }),
  new PendingError("Waiting", "for another"),
  new TypeError("a bug"),
])("an error crosses as data with its class, and what it is about: %s", (error) => {
  const crossed = errorOf(structuredClone(dataOf(error)));
  expect(failureOf(crossed)).toEqual(failureOf(error));
});

it("what a failed call has made crosses with its error", () => {
  const made = { id: "half", properties: { size: 1 }, reasons: ["half of it"] };
  const error = Object.assign(new RetryableError("Timeout", "half of it"), made);
  expect(initializationOf(errorOf(structuredClone(dataOf(error))))).toEqual(made);
});

it("a resource that is not registered crosses as that", () => {
  expect(errorOf(structuredClone(dataOf(new NotRegisteredError("left out"))))).toBeInstanceOf(NotRegisteredError);
});
