import fs from "node:fs";
import path from "node:path";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { poolSettings } from "../../../providers/postgres/configuration";
import { useDirectory } from "../../directories";
import { terminal } from "../failures";

const complete = { PSQL_HOST: "db", PSQL_DBNAME: "school", PSQL_USER: "kindstack", PSQL_PASSWORD: "s3cret" };

describe("poolSettings", () => {
  const directory = useDirectory();
  const file = (name: string) => path.join(directory, name);

  beforeAll(() => {
    for (const name of ["ca", "cert", "key"]) fs.writeFileSync(file(`${name}.pem`), `the ${name}`);
  });

  it("reads the usual variables", () => {
    const login = { host: "db", port: 6432, database: "school", user: "kindstack", password: "s3cret" };
    const settings = poolSettings({ ...complete, PSQL_PORT: "6432", PSQL_POOL_SIZE: "3" });
    expect(settings).toMatchObject([{ ...login, max: 3, ssl: false, application_name: "kindstack" }]);
  });

  it("asks for nothing at the connection's start that a pooler refuses", () => {
    const asked = Object.keys(poolSettings(complete)[0] ?? {});
    const refused = /^(statement|lock|idle_in_transaction_session)_timeout$|^options$/;
    expect(asked.filter((name) => refused.test(name))).toEqual([]);
  });

  it.each([
    ["6432", [6432, 6432]],
    ["6432,6433", [6432, 6433]],
  ])("takes several hosts with port %s", (PSQL_PORT, ports) => {
    expect(poolSettings({ ...complete, PSQL_HOST: "a,b", PSQL_PORT })).toMatchObject([
      { host: "a", port: ports[0] },
      { host: "b", port: ports[1] },
    ]);
  });

  it("encrypts as PGSSLMODE and the files say", () => {
    const tls = (mode: string, files: Record<string, string> = {}) =>
      poolSettings({ ...complete, PGSSLMODE: mode, ...files })[0]?.ssl;
    const anyName = expect.any(Function);
    const ca = { PSQL_CA_FILE: file("ca.pem") };
    const client = { PSQL_CERT_FILE: file("cert.pem"), PSQL_KEY_FILE: file("key.pem") };
    expect(tls("disable", ca)).toBe(false);
    expect(tls("require")).toEqual({ rejectUnauthorized: false });
    expect(tls("require", ca)).toEqual({ rejectUnauthorized: true, ca: "the ca", checkServerIdentity: anyName });
    expect(tls("require", client)).toEqual({ rejectUnauthorized: false, cert: "the cert", key: "the key" });
    expect(tls("verify-ca")).toEqual({ rejectUnauthorized: true, checkServerIdentity: anyName });
    const all = { ca: "the ca", cert: "the cert", key: "the key" };
    expect(tls("verify-full", { ...ca, ...client })).toEqual({ rejectUnauthorized: true, ...all });
  });

  it("reads passwords and certificates from files each time", () => {
    const environment = { ...complete, PSQL_PASSWORD_FILE: file("password") };
    for (const password of ["first", "second"]) {
      fs.writeFileSync(file("password"), `${password}\n`);
      expect(poolSettings(environment)).toMatchObject([{ password }]);
    }
  });

  it("takes variables from the files of a folder, before those of the environment", () => {
    const secret = fs.mkdtempSync(file("secret-"));
    const variables = { PSQL_HOST: "new\n", PSQL_CA_FILE: "ca.crt", PGSSLMODE: "verify-ca" };
    for (const [name, content] of Object.entries({ ...variables, "ca.crt": "the CA of the folder" })) {
      fs.writeFileSync(path.join(secret, name), content);
    }
    expect(poolSettings({ ...complete, PSQL_DIRECTORY: secret })).toMatchObject([
      { host: "new", password: "s3cret", ssl: { ca: "the CA of the folder" } },
    ]);
  });

  it("looks for a password that is not given in the file that PGPASSFILE names, at each connection", async () => {
    const { PSQL_PASSWORD: _, ...others } = complete;
    expect(poolSettings({ ...others, PGPASSWORD: "variable" })).toMatchObject([{ password: "variable" }]);
    const [{ password } = {}] = poolSettings(others) as { password?: () => Promise<string | undefined> }[];
    vi.stubEnv("PGPASSFILE", file("pgpass"));
    for (const [line, found] of [
      ["db:5432:*:*:first", "first"],
      ["other:*:*:*:second", undefined],
    ]) {
      fs.writeFileSync(file("pgpass"), `${line}\n`, { mode: 0o600 });
      expect(await password?.()).toBe(found);
    }
    vi.unstubAllEnvs();
  });

  it.each([
    [{ PSQL_HOST: undefined, PSQL_USER: undefined }, "PSQL_HOST, PSQL_USER must be set"],
    [{ PSQL_HOST: "" }, 'PSQL_HOST "" must match pattern'],
    [{ PSQL_HOST: "a,,b" }, 'PSQL_HOST "a,,b" must match pattern'],
    [{ PSQL_PORT: "postgres" }, 'PSQL_PORT "postgres" must match pattern'],
    [{ PSQL_PORT: "70000" }, 'PSQL_PORT "70000" must be from 1 to 65535'],
    [{ PSQL_HOST: "a,b,c", PSQL_PORT: "1,2" }, "PSQL_PORT names 2 ports for 3 hosts"],
    [{ PSQL_POOL_SIZE: "0" }, 'PSQL_POOL_SIZE "0" must be >= 1'],
    [{ PGSSLMODE: "prefer" }, 'PGSSLMODE "prefer" must be equal to one of the allowed values: disable, require,'],
    [{ PGSSLMODE: "require", PSQL_CA_FILE: "/nowhere/ca.pem" }, "PSQL_CA_FILE cannot be read: there is no file"],
    [{ PSQL_PASSWORD_FILE: "/nowhere" }, "PSQL_PASSWORD_FILE cannot be read: there is no file /nowhere"],
    [{ PSQL_PASSWORD_FILE: "/" }, "PSQL_PASSWORD_FILE cannot be read: EISDIR"],
    [{ PSQL_CERT_FILE: "/cert" }, "PSQL_CERT_FILE and PSQL_KEY_FILE must be given together"],
  ])("refuses %o naming the variable", (change, problem) => {
    const environment = Object.entries({ ...complete, ...change }).filter(([, value]) => value !== undefined);
    const parse = () => poolSettings(Object.fromEntries(environment));
    expect(parse).toThrow(terminal("PostgresNotConfigured"));
    expect(parse).toThrow(problem);
    expect(parse).not.toThrow("s3cret");
  });
});
