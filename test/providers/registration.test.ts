import type { ResourceMonitorClient } from "@pulumi/pulumi/proto/resource_grpc_pb";
import { type RegisterResourceRequest, RegisterResourceResponse, Result } from "@pulumi/pulumi/proto/resource_pb";
import { describe, expect, it, vi } from "vitest";
import { NotRegisteredError, Registrations, withRegistrations } from "../../providers/registration";

/* What is said to a monitor that is played; what an engine makes of it is in the tests of the engine. */

const STACK = "urn:pulumi:s::p::pulumi:pulumi:Stack::p-s";

class Monitor {
  readonly requests: RegisterResourceRequest.AsObject[] = [];
  readonly refused = new Set<string>();
  readonly unanswered = new Set<string>();
  readonly registrations = new Registrations(this as unknown as ResourceMonitorClient, { project: "p", stack: "s" });

  registerResource(
    request: RegisterResourceRequest,
    answer: (error: null, response: RegisterResourceResponse) => void,
  ): void {
    this.requests.push(request.toObject());
    if (this.unanswered.has(request.getName())) return;
    const response = new RegisterResourceResponse().setUrn(
      `urn:pulumi:s::p::${request.getType()}::${request.getName()}`,
    );
    answer(null, response.setResult(this.refused.has(request.getName()) ? Result.FAIL : Result.SUCCESS));
  }

  requestFor(name: string): RegisterResourceRequest.AsObject | undefined {
    return this.requests.find((request) => request.name === name);
  }
}

const row = (name: string, inputs: object = {}) => ({ type: "t", name, inputs });

describe("Registrations", () => {
  it("begin with the stack, under which all is that has no other parent", async () => {
    const { registrations, ...monitor } = new Monitor();
    const component = registrations.register({ type: "c", name: "component" });
    registrations.register({ ...row("row"), parent: component });
    await registrations.settled();
    expect(monitor.requests.map(({ type, name, parent, custom }) => [type, name, parent, custom])).toEqual([
      ["pulumi:pulumi:Stack", "p-s", "", false],
      ["c", "component", STACK, false],
      ["t", "row", "urn:pulumi:s::p::c::component", true],
    ]);
  });

  it("say of each property of a dependent that it comes from no resource, or the engine takes it to come from all", async () => {
    const monitor = new Monitor();
    const first = monitor.registrations.register(row("first"));
    monitor.registrations.register({ ...row("second", { key: "k", value: "v" }), dependsOn: [first] });
    await monitor.registrations.settled();
    expect(monitor.requestFor("second")).toMatchObject({
      dependenciesList: ["urn:pulumi:s::p::t::first"],
      propertydependenciesMap: [
        ["key", { urnsList: [] }],
        ["value", { urnsList: [] }],
      ],
    });
  });

  it("leave out what is undefined, and keep null", async () => {
    const monitor = new Monitor();
    monitor.registrations.register(
      row("row", { gone: undefined, list: [undefined, { gone: undefined, kept: 0 }], none: null }),
    );
    await monitor.registrations.settled();
    expect(monitor.requestFor("row")?.object).toEqual({
      fieldsMap: [
        [
          "list",
          expect.objectContaining({
            listValue: { valuesList: [expect.objectContaining({ nullValue: 0 }), expect.anything()] },
          }),
        ],
        ["none", expect.objectContaining({ nullValue: 0 })],
      ],
    });
  });

  it("register what depends on something that failed: what is not registered is deleted", async () => {
    const monitor = new Monitor();
    monitor.refused.add("first");
    const program = () => {
      const first = monitor.registrations.register(row("first"));
      monitor.registrations.register({ ...row("second"), dependsOn: [first] });
    };
    await withRegistrations(monitor.registrations, program);
    expect(monitor.requestFor("second")).toBeDefined();
  });

  it("end when one that is never answered is abandoned, under whatever parent", async () => {
    const monitor = new Monitor();
    monitor.unanswered.add("first");
    const component = monitor.registrations.register({ type: "c", name: "component" });
    const first = monitor.registrations.register({ ...row("first"), parent: component });
    monitor.registrations.register({ ...row("second"), dependsOn: [first] });
    const settled = monitor.registrations.settled();
    await vi.waitFor(() => expect(monitor.requestFor("first")).toBeDefined());
    monitor.registrations.abandon("urn:pulumi:s::p::t::first"); // another resource
    monitor.registrations.abandon("urn:pulumi:s::p::c$t::first");
    await expect(settled).rejects.toThrow(new NotRegisteredError("urn:pulumi:s::p::c$t::first was not replaced"));
    expect(monitor.requestFor("second")).toBeUndefined();
  });

  it("have all been answered when the error of a program is told", async () => {
    const monitor = new Monitor();
    const program = () => {
      monitor.registrations.register(row("first"));
      throw new Error("the program's own");
    };
    await expect(withRegistrations(monitor.registrations, program)).rejects.toThrow("the program's own");
    expect(monitor.requestFor("first")).toBeDefined();
  });
});
