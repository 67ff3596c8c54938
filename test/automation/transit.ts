import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * Stands for Vault's transit engine, which cannot be had here: it answers the two requests that the CLI makes of it. What
 * it "encrypts" it only marks; how well a key service keeps keys is not what is tested with it.
 */
export class Transit {
  readonly #server: Server;
  /** The paths that were asked for. */
  readonly requests: string[] = [];

  private constructor() {
    this.#server = createServer(async (request, response) => {
      this.requests.push(request.url ?? "");
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { plaintext, ciphertext } = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, string>;
      const data =
        plaintext !== undefined ? { ciphertext: `vault:v1:${plaintext}` } : { plaintext: ciphertext?.split(":")[2] };
      response.setHeader("content-type", "application/json").end(JSON.stringify({ data }));
    });
  }

  static async start(): Promise<Transit> {
    const transit = new Transit();
    await new Promise<void>((resolve) => transit.#server.listen(0, "127.0.0.1", resolve));
    return transit;
  }

  /** The variables by which the CLI finds it. */
  get environment(): Record<string, string> {
    const { port } = this.#server.address() as AddressInfo;
    return { VAULT_SERVER_URL: `http://127.0.0.1:${port}`, VAULT_SERVER_TOKEN: "token" };
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
