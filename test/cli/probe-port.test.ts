import { connect } from "node:net";
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
  [["run", "--shards", "1", "--http-port", "48211"], POD, true],
  [["run", "--http-port=48212", "--kinds", "all"], POD, true],
  [["proxy", "--http-port", "48213"], POD, true],
  [["run", "--http-port", "48214"], {}, false],
  [["status", "--http-port", "48215"], POD, false],
  [["run", "--http-port", "4821x"], POD, false],
  [["run", "--http-port"], POD, false],
  [["run", "--http-port", "0"], POD, false],
])("for the command %j in %j", async (words, environment, isOpen) => {
  await openProbePort(words, environment);
  const port = Number(/\d{5}/.exec(words.join(" "))?.[0] ?? 48_216);
  expect(await accepts(port)).toBe(isOpen);
});
