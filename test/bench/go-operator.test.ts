import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { packageRoot } from "../../src/package";

const MODULE = path.join(packageRoot, "bench/go-operator");

it("the operator in Go has the controller-runtime that the pages speak of", () => {
  const goMod = fs.readFileSync(path.join(MODULE, "go.mod"), "utf8");
  const page = fs.readFileSync(path.join(packageRoot, "docs/benchmarks.md"), "utf8");

  const [, version] = /controller-runtime v(\d+\.\d+)\./.exec(goMod) ?? [];
  expect(page).toMatch(new RegExp(`controller-runtime\\s+${version?.replace(".", "\\.")} and its default settings`));
});
