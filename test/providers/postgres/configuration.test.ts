import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TerminalError } from "../../../providers/errors";
import { poolConfig } from "../../../providers/postgres/configuration";

const complete = { PSQL_HOST: "db", PSQL_DBNAME: "school", PSQL_USER: "kindstack", PSQL_PASSWORD: "s3cret" };

describe("poolConfig", () => {
  let directory: string;
  let caFile: string;

  beforeAll(() => {
    directory = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-ca-"));
    caFile = path.join(directory, "ca.pem");
    fs.writeFileSync(caFile, "a certificate");
  });
  afterAll(() => fs.rmSync(directory, { recursive: true }));

  it("reads the usual variables", () => {
    expect(poolConfig({ ...complete, PSQL_PORT: "6432", PSQL_POOL_SIZE: "3" })).toMatchObject({
      host: "db",
      port: 6432,
      database: "school",
      user: "kindstack",
      password: "s3cret",
      max: 3,
      ssl: false,
      application_name: "kindstack",
    });
  });

  it("has defaults for the port and the size of the pool", () => {
    expect(poolConfig(complete)).toMatchObject({ port: 5432, max: 10 });
  });

  it("encrypts as PGSSLMODE and the CA file say", () => {
    const tls = (mode: string, file?: string) =>
      poolConfig({ ...complete, PGSSLMODE: mode, ...(file !== undefined && { PSQL_CA_FILE: file }) }).ssl;
    const anyName = expect.any(Function);
    expect(tls("disable", caFile)).toBe(false);
    expect(tls("require")).toEqual({ rejectUnauthorized: false });
    expect(tls("require", caFile)).toEqual({
      rejectUnauthorized: true,
      ca: "a certificate",
      checkServerIdentity: anyName,
    });
    expect(tls("verify-ca")).toEqual({ rejectUnauthorized: true, checkServerIdentity: anyName });
    expect(tls("verify-full", caFile)).toEqual({ rejectUnauthorized: true, ca: "a certificate" });
  });

  it.each([
    [{ PSQL_HOST: undefined, PSQL_USER: undefined }, "PSQL_HOST, PSQL_USER must be set"],
    [{ PSQL_HOST: "" }, 'PSQL_HOST "" must not have fewer than 1 characters'],
    [{ PSQL_PORT: "postgres" }, 'PSQL_PORT "postgres" must be integer'],
    [{ PSQL_PORT: "70000" }, 'PSQL_PORT "70000" must be <= 65535'],
    [{ PSQL_POOL_SIZE: "0" }, 'PSQL_POOL_SIZE "0" must be >= 1'],
    [{ KINDSTACK_POSTGRES_TAKEOVER_SECONDS: "60" }, 'KINDSTACK_POSTGRES_TAKEOVER_SECONDS "60" must be 0, or >= 600'],
    [{ PGSSLMODE: "prefer" }, 'PGSSLMODE "prefer" must be equal to one of the allowed values: disable, require,'],
    [{ PGSSLMODE: "require", PSQL_CA_FILE: "/nowhere/ca.pem" }, "PSQL_CA_FILE cannot be read: ENOENT"],
  ])("refuses %o naming the variable", (change, problem) => {
    const environment = Object.entries({ ...complete, ...change }).filter(([, value]) => value !== undefined);
    const parse = () => poolConfig(Object.fromEntries(environment));
    expect(parse).toThrow(TerminalError);
    expect(parse).toThrow(expect.objectContaining({ reason: "PostgresNotConfigured" }));
    expect(parse).toThrow(problem);
    expect(parse).not.toThrow("s3cret");
  });
});
