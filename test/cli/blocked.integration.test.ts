import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
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

it("ends it also where nothing reads what it says", async () => {
  const text = `require(${JSON.stringify(MODULE)}).endIfBlocked(1); for (;;);`;
  const stdio = ["ignore", "ignore", "pipe"] as const;
  const child = spawn(process.execPath, ["-e", text], { stdio: [...stdio], timeout: 30_000 });
  child.stderr?.destroy();
  expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
});

it("keeps no process from ending by itself", () => {
  expect(run(`endIfBlocked(1); console.log("done");`)).toMatchObject({ status: 0, stdout: "done\n", stderr: "" });
});
