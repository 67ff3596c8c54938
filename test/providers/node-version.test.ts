import { describe, expect, it } from "vitest";
import { unsupportedNode } from "../../providers/node-version";

describe("the version of Node.js", () => {
  it.each(["22.19.0", "22.20.1", "24.0.0"])("%s is supported", (version) => {
    expect(unsupportedNode(version, ">=22.19")).toBeUndefined();
  });

  it.each(["20.20.2", "22.18.9"])("%s is refused with the way out", (version) => {
    expect(unsupportedNode(version, ">=22.19")).toMatch(
      new RegExp(`^Node\\.js 22\\.19 or later is needed; this is ${version}\\. Set PATH .* In a clone, \`npx\``),
    );
  });
});
