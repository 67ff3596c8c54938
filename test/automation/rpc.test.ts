import { expect, it } from "vitest";
import { TerminalError } from "../../providers/errors";
import { Connection } from "../../src/automation/rpc";

it("answers also where a provider has made what JSON does not have", async () => {
  const error = Object.assign(new TerminalError("Invalid", "failed"), { id: "one", properties: { size: 1n } });
  const answer = await new Promise<string>((send) => {
    const connection = new Connection(send, { request: () => Promise.reject(error), notification() {} });
    connection.receive('{"id":7,"method":"provider"}');
  });
  expect(JSON.parse(answer)).toEqual({ id: 7, error: { message: expect.stringContaining("BigInt") } });
});
