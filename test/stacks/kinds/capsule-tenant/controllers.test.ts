import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { DNS, ROUTING } from "../../../../stacks/kinds/capsule-tenant/policies/controllers";

const page = readFileSync(path.join(__dirname, "../../../../docs/capsule.md"), "utf8");

it.each([...ROUTING])("the page lists $name with its versions and annotations", ({ name, versions, annotations }) => {
  const row = page.split("\n").find((line) => line.startsWith(`| ${name} ${versions} |`)) ?? "";
  const [prefix] = annotations.map((one) => one.slice(0, one.indexOf("/") + 1));
  for (const annotation of annotations) {
    const rest = annotation.slice(prefix?.length);
    expect(row).toMatch(new RegExp(`\`(${prefix?.replaceAll(".", "[.]")})?${rest.replaceAll(".", "[.]")}\``));
  }
  expect(row.split("`").length).toBe(2 * annotations.length + 1);
});

it.each([...DNS])("the page names $name with its versions", ({ name, versions }) => {
  expect(page).toContain(`${name} (${versions})`);
});
