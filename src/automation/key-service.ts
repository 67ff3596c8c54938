import { createCipheriv, createDecipheriv, pbkdf2, randomBytes, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { TerminalError } from "../../providers/errors";
import { OWN_KEY_SERVICE, type StateProtection } from "../config";
import { parseJson } from "./parse-json";

const derive = promisify(pbkdf2);

/** What the engine itself does of a passphrase, in each of its processes (`config/crypt.go`). */
const ROUNDS = 1_000_000;
const CIPHER = "aes-256-gcm";
const [SALT_BYTES, IV_BYTES, TAG_BYTES, KEY_BYTES] = [16, 12, 16, 32];
const HEAD_BYTES = SALT_BYTES + IV_BYTES + TAG_BYTES;
const PREFIX = "vault:v1:";
const MAX_BODY_BYTES = 64 * 1024;

const bodySchema = Compile(
  Type.Object({ plaintext: Type.Optional(Type.String()), ciphertext: Type.Optional(Type.String()) }),
);

/**
 * The key service of an operator that has a passphrase: it derives a key of it once, instead of each CLI anew, which is about
 * half of the time that a small update takes.
 *
 * It speaks for the two requests that the engine makes of Vault's transit engine
 * (https://developer.hashicorp.com/vault/api-docs/secret/transit), on the loopback interface, to who has the token of this
 * process. What it encrypts are the keys of stacks; their salt is beside them, so whoever has the passphrase can read them.
 */
export class KeyService {
  readonly #passphrase: string;
  readonly #token = randomBytes(32).toString("base64url");
  readonly #salt = randomBytes(SALT_BYTES);
  /** By salt, in hexadecimal: other processes have made stacks as well. */
  readonly #keys = new Map<string, Promise<Buffer>>();
  readonly #server: Server;

  private constructor(passphrase: string) {
    this.#passphrase = passphrase;
    this.#server = createServer((request, response) => void this.#answer(request, response)).unref();
  }

  /**
   * Starts one if it is what protects the state; or if it may have been, so that stacks go back to the passphrase, and no Vault is
   * named in the environment.
   *
   * @throws TerminalError when it cannot listen; what reading the passphrase's file throws
   */
  static async startIfUsed(
    { passphrase, keyService }: StateProtection,
    environment: NodeJS.ProcessEnv,
  ): Promise<KeyService | undefined> {
    const isUsed = keyService === OWN_KEY_SERVICE;
    const mayHaveBeen = keyService === undefined && !Object.keys(environment).some(isVaults);
    if (passphrase === undefined || !(isUsed || mayHaveBeen)) return undefined;
    const value = "file" in passphrase ? await readFile(passphrase.file, "utf8") : passphrase.value;
    const service = new KeyService(value.trim());
    await new Promise<void>((resolve, reject) => {
      service.#server.once("error", reject).listen(0, "127.0.0.1", resolve);
    }).catch((error: Error) => {
      throw new TerminalError("NoKeyService", `the key service cannot listen on 127.0.0.1: ${error.message}`);
    });
    return service;
  }

  /** An environment in which the CLI asks this service, and no other that it would know of. */
  environmentOf(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
    const others = Object.entries(environment).filter(([name]) => !isVaults(name));
    const { port } = this.#server.address() as AddressInfo;
    return {
      ...Object.fromEntries(others),
      VAULT_SERVER_URL: `http://127.0.0.1:${port}`,
      VAULT_SERVER_TOKEN: this.#token,
    };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [status, body] = await this.#respond(request).catch((error: Error) => refusal(500, error.message));
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  }

  async #respond(request: IncomingMessage): Promise<Answer> {
    const token = Buffer.from(String(request.headers["x-vault-token"]));
    const expected = Buffer.from(this.#token);
    if (token.length !== expected.length || !timingSafeEqual(token, expected)) {
      return refusal(403, "permission denied");
    }
    const text = await readBody(request);
    const body = text === undefined ? undefined : parseJson(bodySchema, text);
    if (body?.plaintext !== undefined) {
      return [200, { data: { ciphertext: await this.#encrypt(Buffer.from(body.plaintext, "base64")) } }];
    }
    if (body?.ciphertext === undefined) return refusal(400, "either a plaintext or a ciphertext is needed");
    const plaintext = await this.#decrypt(body.ciphertext);
    if (plaintext === undefined) return refusal(400, "the stack was protected with another passphrase");
    return [200, { data: { plaintext: plaintext.toString("base64") } }];
  }

  async #encrypt(plaintext: Buffer): Promise<string> {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, await this.#keyOf(this.#salt), iv);
    const text = Buffer.concat([cipher.update(plaintext), cipher.final()]);
    return PREFIX + Buffer.concat([this.#salt, iv, cipher.getAuthTag(), text]).toString("base64");
  }

  /** `undefined` for what was not encrypted with this passphrase, or not at all. */
  async #decrypt(ciphertext: string): Promise<Buffer | undefined> {
    const bytes = Buffer.from(ciphertext.startsWith(PREFIX) ? ciphertext.slice(PREFIX.length) : "", "base64");
    if (bytes.length < HEAD_BYTES) return undefined;
    const salt = bytes.subarray(0, SALT_BYTES);
    const iv = bytes.subarray(SALT_BYTES, SALT_BYTES + IV_BYTES);
    const tag = bytes.subarray(SALT_BYTES + IV_BYTES, HEAD_BYTES);
    const decipher = createDecipheriv(CIPHER, await this.#keyOf(salt), iv).setAuthTag(tag);
    try {
      return Buffer.concat([decipher.update(bytes.subarray(HEAD_BYTES)), decipher.final()]);
    } catch {
      return undefined; // the tag does not fit
    }
  }

  #keyOf(salt: Buffer): Promise<Buffer> {
    const name = salt.toString("hex");
    const key = this.#keys.get(name) ?? derive(this.#passphrase, salt, ROUNDS, KEY_BYTES, "sha256");
    this.#keys.set(name, key);
    return key;
  }
}

function isVaults(variable: string): boolean {
  return variable.startsWith("VAULT_");
}

type Answer = [status: number, body: object];

/** As Vault words it, so that the CLI shows the message. */
function refusal(status: number, message: string): Answer {
  return [status, { errors: [message] }];
}

/** `undefined` for one that is longer than any that the engine sends. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
