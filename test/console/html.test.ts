import { describe, expect, it } from "vitest";
import { html } from "../../src/console/html";
import { drawing, graphOf } from "../../src/console/stack-graph";

it("html escapes all that is put in, in texts and attributes, and leaves HTML of its own as it is", () => {
  const hostile = `"><script>alert('&')</script>`;
  const inner = html`<b title="${hostile}">${hostile}</b>`;
  const { text } = html`<p>${inner}${[html`<i>1</i>`, "<2>"]}${3}${undefined}${false}</p>`;
  expect(text).not.toMatch(/<script|"><|'/);
  expect(text).toContain("<i>1</i>&#60;2&#62;3</p>");
  expect(text.match(/&#60;script&#62;/g)).toHaveLength(2);
});

describe("the graph of a stack", () => {
  const urn = (type: string, name: string) => `urn:pulumi:s::kindstack::${type}::${name}`;
  const DYNAMIC = "pulumi-nodejs:dynamic/kindstack:Row";
  const resource = (name: string, more: object = {}) => ({
    urn: urn(DYNAMIC, name),
    type: DYNAMIC,
    id: `id-${name}`,
    outputs: {},
    ...more,
  });
  const state = (resources: ReturnType<typeof resource>[]) => ({ version: 3, deployment: { resources } });

  it("shows no secret: neither what is marked as one, nor what is called so", () => {
    const outputs = {
      user: "alice",
      password: "hunter2",
      key: { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", ciphertext: "v1:abc" },
      nested: { token: "t" },
      __provider: "code",
    };
    const [node] = graphOf(state([resource("a", { outputs })]), () => undefined);
    expect(node?.outputs).toEqual([
      ["user", "alice"],
      ["password", "[secret]"],
      ["key", "[secret]"],
    ]);
  });

  it("has resources by name, numbers in their order, whatever their order in the state", () => {
    const nodes = graphOf(state(["pod-10", "pod-2", "a"].map((name) => resource(name))), () => undefined);
    expect(nodes.map(({ name }) => name)).toEqual(["a", "pod-2", "pod-10"]);
  });

  it("draws what others need on their left, also when a state has a circle", () => {
    const [a, b] = [urn(DYNAMIC, "a"), urn(DYNAMIC, "b")];
    const nodes = graphOf(
      state([resource("c", { dependencies: [b] }), resource("a"), resource("b", { dependencies: [a] })]),
      () => undefined,
    );
    const { text } = drawing(nodes);
    const left = (name: string) =>
      Number(new RegExp(`translate\\((\\d+) \\d+\\)"><title>Row ${name}:`).exec(text)?.[1]);
    expect(left("a")).toBeLessThan(left("b"));
    expect(left("b")).toBeLessThan(left("c"));
    const circle = graphOf(
      state([resource("a", { dependencies: [b] }), resource("b", { dependencies: [a] })]),
      () => undefined,
    );
    expect(drawing(circle).text).toContain("Row b");
  });
});
