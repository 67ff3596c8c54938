import { output, secret } from "@pulumi/pulumi/output";
import { describe, expect, it } from "vitest";
import { sealed, unsealed } from "../../providers/literal";
import { declaredBy, Registrations } from "../../providers/registration";
import { Thing } from "../automation/things";

const row = (name: string, inputs: object = {}) => ({ type: "t", name, inputs });

describe("Registrations", () => {
  it("name other resources of the program by their place in it", async () => {
    const registrations = new Registrations({});
    const component = registrations.register({ type: "c", name: "component" });
    const first = registrations.register({ ...row("first", { key: "k" }), parent: component });
    registrations.register({ ...row("second"), options: { dependsOn: [first] } });
    expect(await registrations.settled()).toEqual([
      { type: "c", name: "component" },
      { type: "t", name: "first", parent: 0, inputs: { key: "k" } },
      { type: "t", name: "second", dependsOn: [1], inputs: {} },
    ]);
  });

  it("refuse a resource of another program", async () => {
    const other = new Registrations({}).register(row("other"));
    const registrations = new Registrations({});
    registrations.register({ ...row("mine"), options: { dependsOn: [other] } });
    await expect(registrations.settled()).rejects.toThrow("another update or the SDK registered");
  });

  it("refuse to tell an output, which is not known when a program runs", () => {
    const made = new Registrations({}).register(row("a")) as { id?: unknown };
    expect(() => made.id).toThrow(/the output "id" of "a".*dependsOn/);
  });
});

describe("a program", () => {
  it("may pass resources between its async functions", async () => {
    const make = async (key: string) => new Thing(key, { key, value: "1" });
    const program = async () => {
      new Thing("b", { key: "b", value: "1" }, { dependsOn: await make("a") });
    };
    expect(await declaredBy(program)).toMatchObject([{ name: "a" }, { name: "b", dependsOn: [0] }]);
  });

  it("declares its own resources only, though others run at the same time", async () => {
    const program = (name: string) => async () => {
      await Promise.resolve();
      new Thing(name, { key: name, value: "1" });
    };
    const all = await Promise.all(["a", "b"].map((name) => declaredBy(program(name))));
    expect(all.map((declared) => declared.map(({ name }) => name))).toEqual([["a"], ["b"]]);
  });
});

it("the inputs of a resource have secrets as the engine takes them, and what is around them as it is", async () => {
  const program = () => void new Thing("a", { key: output("k"), value: secret(Promise.resolve("v")) });
  const [resource] = await declaredBy(program);
  expect(resource?.inputs).toMatchObject({ key: "k", value: sealed("v") });
  expect(unsealed(resource?.inputs)).toMatchObject({ key: "k", value: "v" });
});
