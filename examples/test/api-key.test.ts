import { objectOf, planBetween, registeredBy } from "kindstack/testing";
import { describe, expect, it } from "vitest";
import { apiKey } from "../src/api-key/kind";

const withLabel = (label: string) => objectOf(apiKey, { label }, { name: "billing" });
const outputs = ({ type }: { type: string }) => (type.startsWith("keyring:") ? { value: "of-the-test" } : {});

describe("ApiKey", () => {
  it("makes a key, and a Secret with it", async () => {
    expect(await registeredBy(apiKey, withLabel("billing"), { outputs })).toMatchObject([
      { name: "billing/key", type: "keyring:index:Key", inputs: { label: "billing", length: 32 } },
      { name: "billing/secret", inputs: { manifest: { kind: "Secret", stringData: { key: "of-the-test" } } } },
    ]);
  });

  it("keeps the key with another label", async () => {
    expect(await planBetween(apiKey, withLabel("billing"), withLabel("invoices"), { outputs })).toEqual([
      { operation: "update", name: "billing/key", inputs: ["label"] },
    ]);
  });
});
