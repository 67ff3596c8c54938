import { Agent, request } from "undici";
import type { Credential } from "./pki";

const TIMEOUT_MS = 2_000;

/** Asks the components of the control plane how they are; close it when they have answered. */
export class HealthProbe {
  readonly #agent: Agent;

  constructor(ca: Credential, client?: Credential) {
    this.#agent = new Agent({
      connect: { ca: ca.certificate, ...(client && { cert: client.certificate, key: client.key }) },
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
    });
  }

  /** Whether `GET https://127.0.0.1:<port><path>` answers 200. @throws Error when nothing answers */
  async isOk(port: number, path: string): Promise<boolean> {
    const response = await request(`https://127.0.0.1:${port}${path}`, { dispatcher: this.#agent });
    await response.body.dump();
    return response.statusCode === 200;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}
