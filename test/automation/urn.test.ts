import { expect, it } from "vitest";
import { isKubernetesObject, isScaffolding, nameOf } from "../../src/automation/urn";

const urn = (name: string) => `urn:pulumi:stack::kindstack::pulumi-nodejs:dynamic/test:Thing::${name}`;

it("nameOf is what stands behind the type, whatever it contains", () => {
  expect(nameOf(urn("rolebinding/acme/admin"))).toBe("rolebinding/acme/admin");
  expect(nameOf(urn("a::b"))).toBe("a::b");
});

it.each([
  ["pulumi:pulumi:Stack", true],
  ["pulumi:providers:pulumi-nodejs", true],
  ["kindstack:g/v1:Writer$pulumi:providers:kubernetes", true],
  ["pulumi-nodejs:dynamic/kindstack:Guard", true],
  ["kindstack:g/v1:Writer", false],
  ["kindstack:g/v1:Writer$pulumi-nodejs:dynamic/test:Row", false],
])("isScaffolding %s: %s", (type, expected) => {
  expect(isScaffolding(`urn:pulumi:stack::kindstack::${type}::a`)).toBe(expected);
});

it.each([
  ["pulumi-nodejs:dynamic/kubernetes:Secret", true],
  ["kindstack:g/v1:Writer$pulumi-nodejs:dynamic/kubernetes:Pod", true],
  ["pulumi-nodejs:dynamic/postgres:Row", false],
  ["keyring:index:Key", false],
])("isKubernetesObject %s: %s", (type, expected) => {
  expect(isKubernetesObject(`urn:pulumi:stack::kindstack::${type}::a`)).toBe(expected);
});
