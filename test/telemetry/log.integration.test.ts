import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";

const MODULE = path.resolve(__dirname, "../../dist/src/telemetry/log.js");

it.runIf(fs.existsSync("/dev/full"))("ends no process whose log is on a full disk", () => {
  const program = `
    const logger = require(${JSON.stringify(MODULE)}).createLogger();
    for (let line = 0; line < 3; line++) logger.info("line");
    setImmediate(() => process.stderr.write("alive"));`;
  const disk = fs.openSync("/dev/full", "w");
  const { status, stderr } = spawnSync(process.execPath, ["-e", program], {
    encoding: "utf8",
    stdio: ["ignore", disk, "pipe"],
  });
  fs.closeSync(disk);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "alive" });
});
