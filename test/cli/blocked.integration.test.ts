import { spawnSync } from "node:child_process";
import path from "node:path";
import { expect, it } from "vitest";

const MODULE = path.resolve(__dirname, "../../dist/src/cli/blocked.js");

function run(body: string) {
  const text = `const { endIfBlocked } = require(${JSON.stringify(MODULE)}); ${body}`;
  return spawnSync(process.execPath, ["-e", text], { encoding: "utf8" });
}

it("ends a process whose program loops, and names the object", () => {
  const { signal, stderr } = run(`
    const watchdog = endIfBlocked(1);
    watchdog.runs("Note default/one, whose name is long");
    watchdog.runs("Note default/two");
    for (;;);
  `);
  expect([signal, stderr]).toEqual([
    "SIGKILL",
    "kindstack: the program of Note default/two has not ended for 1 s: does it loop?\n",
  ]);
});

it("keeps no process from ending by itself", () => {
  expect(run(`endIfBlocked(1); console.log("done");`)).toMatchObject({ status: 0, stdout: "done\n", stderr: "" });
});
