import { objectOf, planBetween, registeredBy } from "kindstack/testing";
import { describe, expect, it } from "vitest";
import { appDatabase } from "../src/app-database/kind";

const withRotation = (rotation: number) => objectOf(appDatabase, { database: "shop", rotation }, { name: "shop" });
const outputs = () => ({ password: "of-the-test" });

describe("AppDatabase", () => {
  it("makes a database, and a Secret with what to log in with", async () => {
    expect(await registeredBy(appDatabase, withRotation(1), { outputs })).toMatchObject([
      { name: "shop/database", inputs: { name: "shop", owner: "default/shop", rotation: 1 } },
      {
        name: "shop/secret",
        inputs: {
          manifest: { kind: "Secret", stringData: { database: "shop", user: "shop", password: "of-the-test" } },
        },
      },
    ]);
  });

  it("changes the password in place", async () => {
    expect(await planBetween(appDatabase, withRotation(1), withRotation(2), { outputs })).toEqual([
      { operation: "update", name: "shop/database", inputs: ["rotation"] },
    ]);
  });

  it("refuses a name that PostgreSQL would quote", () => {
    expect(() => objectOf(appDatabase, { database: "Shop; --" })).toThrow("spec.database");
  });
});
