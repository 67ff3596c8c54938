import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { apiPage, publicModules } from "./api-page";

const ROOT = path.resolve(__dirname, "..");

it("docs/api.md is what the doc comments say; `vitest -u` writes it", async () => {
  await expect(apiPage()).toMatchFileSnapshot(path.join(ROOT, "docs/api.md"));
});

it("docs/api.md has every public module, which exports nothing without a doc comment", () => {
  const { exports } = JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8")) as { exports: object };
  const named = Object.keys(exports).map((name) => name.replace(/^\./, "kindstack"));
  const ofStates = ["guard", "kubernetes/object", "postgres/row"].map((name) => `kindstack/providers/${name}`);
  expect(named.filter((name) => ![...ofStates, "kindstack/package.json"].includes(name))).toEqual(publicModules());
  expect(apiPage().match(/### `\w+`\n\n```/g) ?? []).toEqual([]);
});
