import * as runtime from "@pulumi/pulumi/runtime";
import { MockMonitor } from "@pulumi/pulumi/runtime/mocks";
import { vi } from "vitest";

/** A registration as the engine receives it, before any provider. */
export interface Registration {
  type: string;
  name: string;
  inputs: Record<string, unknown>;
  /** Whether a property goes to the engine as a secret. */
  isSecret(property: string): boolean;
  protect: boolean;
  retainOnDelete: boolean;
  /** Names of the resources that it waits for. */
  dependsOn: string[];
}

/** What marks a secret on the wire, in place of the value. */
const SECRET_SIGNATURE = "4dabf18193072939515e22adb298388d";

interface Request {
  getType(): string;
  getName(): string;
  getObject(): { toJavaScript(): Record<string, unknown> };
  getProtect(): boolean;
  getRetainondelete(): boolean;
  getDependenciesList(): string[];
}

/** Runs a program against Pulumi's mocks and returns what it registered. */
export async function registrationsOf(program: () => Promise<void>): Promise<Registration[]> {
  await runtime.setMocks(
    { newResource: ({ inputs, name }) => ({ id: name, state: inputs }), call: () => ({}) },
    "kindstack",
    "test",
  );
  const registrations: Registration[] = [];
  const register = MockMonitor.prototype.registerResource;
  const spy = vi.spyOn(MockMonitor.prototype, "registerResource").mockImplementation(function (
    this: MockMonitor,
    request: Request,
    callback,
  ) {
    registrations.push(registration(request));
    return register.call(this, request, callback);
  });
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 1; // Pulumi takes a trace for each promise, and to map those to sources took half of the time
  try {
    await runtime.runInPulumiStack(program);
    await runtime.disconnect(); // waits until all is registered
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    spy.mockRestore();
  }
  return registrations.filter(({ type }) => type !== "pulumi:pulumi:Stack");
}

function registration(request: Request): Registration {
  const properties = request.getObject().toJavaScript();
  const isSecret = (property: string) => {
    const value = properties[property];
    return typeof value === "object" && value !== null && SECRET_SIGNATURE in value;
  };
  return {
    type: request.getType(),
    name: request.getName(),
    inputs: Object.fromEntries(
      Object.entries(properties).map(([property, value]) => [
        property,
        isSecret(property) ? (value as { value: unknown }).value : value,
      ]),
    ),
    isSecret,
    protect: request.getProtect(),
    retainOnDelete: request.getRetainondelete(),
    dependsOn: request.getDependenciesList().map((urn) => urn.split("::").at(-1) ?? ""),
  };
}
