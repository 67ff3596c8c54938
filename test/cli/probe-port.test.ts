import { connect } from "node:net";
import getPort from "get-port";
import { expect, it } from "vitest";
import { openProbePort } from "../../src/cli/probe-port";

const POD = { KUBERNETES_SERVICE_HOST: "10.96.0.1" };

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });
}

it.each<[string[], NodeJS.ProcessEnv, boolean]>([
  [["run", "--shards", "1", "--http-port", "PORT"], POD, true],
  [["run", "--http-port=PORT", "--kinds", "all"], POD, true],
  [["proxy", "--http-port", "PORT"], POD, true],
  [["run", "--http-port", "PORT"], {}, false],
  [["status", "--http-port", "PORT"], POD, false],
  [["run", "--http-port", "PORTx"], POD, false],
  [["run", "--http-port"], POD, false],
  [["run", "--http-port", "0"], POD, false],
])("for the command %j in %j", async (words, environment, isOpen) => {
  const port = await getPort(); // a fixed one may be that of any connection
  const given = words.map((word) => word.replace("PORT", String(port)));
  await openProbePort(given, environment);
  expect(await accepts(port)).toBe(isOpen);
});
