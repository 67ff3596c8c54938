import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** As the CLI calls it. */
export const KEY_SERVICE = "hashivault://kindstack";

/**
 * Stands for Vault's transit engine: it answers the two requests that the CLI makes of it, at once. What it "encrypts" it
 * only marks; it shows what a key service spares the CLI, not how well one keeps keys.
 */
export class KeyService {
  readonly #server: Server;

  private constructor() {
    this.#server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { plaintext, ciphertext } = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, string>;
      const data =
        plaintext !== undefined ? { ciphertext: `vault:v1:${plaintext}` } : { plaintext: ciphertext?.split(":")[2] };
      response.setHeader("content-type", "application/json").end(JSON.stringify({ data }));
    });
  }

  static async start(): Promise<KeyService> {
    const service = new KeyService();
    await new Promise<void>((resolve) => service.#server.listen(0, "127.0.0.1", resolve));
    return service;
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

/** What the tables say of {@link withKeyService}. */
export const KEY_SERVICE_NOTE =
  "The key service is a stand-in of Vault's transit engine in the bench's process, which answers at once.";

/** Runs with a key service, of which an operator is told by these variables. */
export async function withKeyService<T>(run: (environment: Record<string, string>) => Promise<T>): Promise<T> {
  const service = await KeyService.start();
  try {
    return await run({ ...service.environment, KINDSTACK_SECRETS_PROVIDER: KEY_SERVICE });
  } finally {
    await service.stop();
  }
}
