import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { KubeConfig } from "@kubernetes/client-node";
import { afterEach, describe, expect, it } from "vitest";
import { KubernetesClient } from "../../../providers/kubernetes/client";

let server: Server;
let client: KubernetesClient;

async function serve(answer: RequestListener): Promise<void> {
  server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: "test", server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: "test", token: "one" },
  );
  client = new KubernetesClient(config);
}

afterEach(async () => {
  await client.close();
  server.close();
});

describe("an answer that breaks off", () => {
  it.each([200, 500])("with the status %i is no answer", async (status) => {
    await serve((_, response) => {
      response.writeHead(status, { "content-length": 100 });
      response.write('{"kind":');
      setImmediate(() => response.destroy());
    });

    await expect(client.json("GET", "/version")).rejects.toMatchObject({
      status: 0,
      reason: "Unreachable",
      errorClass: "retryable",
      message: expect.stringMatching(/^the API server at http:\/\/127\.0\.0\.1:\d+ did not answer: /),
    });
  });
});

describe("what ends the work that asks", () => {
  it("is thrown as it is", async () => {
    await serve(() => {}); // and never answers
    const stop = new AbortController();

    const asking = client.json("GET", "/version", { signal: stop.signal });
    stop.abort(new Error("stopped"));

    await expect(asking).rejects.toThrow("stopped");
  });
});
