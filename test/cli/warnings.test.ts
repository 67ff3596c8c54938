import { execFileSync } from "node:child_process";
import path from "node:path";
import { expect, it } from "vitest";

/** What a process prints that imports the module, logs to standard output, and warns. */
function printed(warning: string): string {
  const script = `
    const { createJiti } = require("jiti");
    const { logWarnings } = createJiti(process.cwd())(${JSON.stringify(path.resolve(__dirname, "../../src/cli/warnings.ts"))});
    logWarnings({ warn: (fields, message) => console.log(JSON.stringify({ message, cause: fields.err.message })) });
    ${warning}`;
  return execFileSync(process.execPath, ["-e", script], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

it("says nothing of what a library should do otherwise", () => {
  expect(printed('require("punycode"); process.emitWarning("old", "DeprecationWarning");')).toBe("");
});

it("puts other warnings of Node.js into the log", () => {
  const line = JSON.parse(printed('process.emitWarning("eleven listeners", "MaxListenersExceededWarning");'));
  expect(line).toEqual({ message: "warning of Node.js", cause: "eleven listeners" });
});
