import { request } from "undici";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { KeyService } from "../../src/automation/key-service";
import { OWN_KEY_SERVICE } from "../../src/config";

const passphrase = { value: "secret" };
let service: KeyService;
let environment: NodeJS.ProcessEnv;
beforeEach(async () => {
  const started = await KeyService.startIfUsed({ passphrase, keyService: OWN_KEY_SERVICE }, {});
  if (started === undefined) throw new Error("it has not started");
  service = started;
  environment = service.environmentOf({ HOME: "/home", VAULT_TOKEN: "another", VAULT_NAMESPACE: "another" });
});
afterEach(() => service.close());

async function ask(what: "encrypt" | "decrypt", body: unknown, token = environment.VAULT_SERVER_TOKEN ?? "") {
  const response = await request(`${environment.VAULT_SERVER_URL}/v1/transit/${what}/kindstack-own`, {
    method: "PUT",
    headers: token === "" ? {} : { "x-vault-token": token },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.statusCode, ...((await response.body.json()) as { data?: Record<string, string> }) };
}

const PLAINTEXT = Buffer.from("the key of a stack").toString("base64");

describe("the operator's own key service", () => {
  it("gives back what it has encrypted, never twice the same way", async () => {
    const [first, second] = [
      await ask("encrypt", { plaintext: PLAINTEXT }),
      await ask("encrypt", { plaintext: PLAINTEXT }),
    ];
    expect(first.data?.ciphertext).toMatch(/^vault:v1:/);
    expect(first.data?.ciphertext).not.toBe(second.data?.ciphertext);
    expect(await ask("decrypt", first.data)).toEqual({ status: 200, data: { plaintext: PLAINTEXT } });
  });

  it("tells nothing to whoever does not have its token", async () => {
    const sameLength = "A".repeat(environment.VAULT_SERVER_TOKEN?.length ?? 0);
    for (const token of ["", "another", sameLength]) {
      expect(await ask("encrypt", { plaintext: PLAINTEXT }, token)).toMatchObject({ status: 403 });
    }
  });

  it.each([
    ["has been changed", (text: string) => `${text.slice(0, -4)}AAA=`],
    ["is too short", () => "vault:v1:AAAA"],
    ["is no ciphertext", () => "plain"],
  ])("refuses what %s", async (_what, change) => {
    const { data } = await ask("encrypt", { plaintext: PLAINTEXT });
    expect(await ask("decrypt", { ciphertext: change(data?.ciphertext ?? "") })).toMatchObject({ status: 400 });
  });

  it.each(["not JSON", "{}", '{"plaintext": 1}', JSON.stringify({ plaintext: "A".repeat(70_000) })])(
    "refuses a request that is none: %.20s",
    async (body) => {
      expect(await ask("encrypt", body)).toMatchObject({ status: 400 });
    },
  );

  it("is the only one that the CLI is told of", () => {
    expect(Object.keys(environment).sort()).toEqual(["HOME", "VAULT_SERVER_TOKEN", "VAULT_SERVER_URL"]);
  });

  it.each([
    ["it protects the state", { passphrase, keyService: OWN_KEY_SERVICE }, {}, true],
    [
      "it does, though a Vault is named",
      { passphrase, keyService: OWN_KEY_SERVICE },
      { VAULT_ADDR: "https://vault" },
      true,
    ],
    ["the passphrase does again", { passphrase, keyService: undefined }, {}, true],
    ["it does again, after a Vault", { passphrase, keyService: undefined }, { VAULT_ADDR: "https://vault" }, false],
    ["another does", { passphrase, keyService: "awskms://alias/kindstack" }, {}, false],
    ["there is no passphrase", { passphrase: undefined, keyService: undefined }, {}, false],
  ])("runs where it may be needed, and nowhere else: %s", async (_when, protection, variables, isStarted) => {
    const other = await KeyService.startIfUsed(protection, variables);
    expect(other !== undefined).toBe(isStarted);
    await other?.close();
  });
});
