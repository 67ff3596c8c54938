import { expect, it } from "vitest";
import { sourcesOfImage } from "./image";

it("lets Docker copy whatever the Dockerfile names", () => {
  expect(sourcesOfImage()).toContain("package-lock.json");
});
