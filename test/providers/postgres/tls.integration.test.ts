import fs from "node:fs";
import path from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { poolSettings } from "../../../providers/postgres/configuration";
import { issueCertificate } from "../../../src/tls/certificate";
import { useDirectory } from "../../directories";
import { kindstack } from "../../e2e/operator";
import { TestAuthority } from "../../tls/test-authority";
import { OWNER, queryServer, type Server, Servers } from "./servers";

/* What a PostgreSQL server's certificate is checked for, by the mode: of the rows' database, and of the state's. */

const directory = useDirectory();
const ca = path.join(directory, "ca.crt");
/** Certified for its address, for another one, by another CA, and not at all. */
const NAMES = ["named", "misnamed", "foreign", "plain"] as const;
type Name = (typeof NAMES)[number];

let servers: Servers;
let server: Record<Name, Server>;

beforeAll(async () => {
  const authority = await TestAuthority.create();
  fs.writeFileSync(ca, authority.own.certificate);
  const notAfter = new Date(Date.now() + 3_600_000);
  const other = { subject: { CN: "db" }, usages: ["server" as const], names: ["db.example.com"], notAfter };
  servers = await Servers.open();
  const [named, misnamed, foreign, plain] = await Promise.all([
    servers.start(await authority.server()),
    servers.start(await issueCertificate(authority.own, other)),
    servers.start(await (await TestAuthority.create()).server()),
    servers.start(),
  ]);
  server = { named, misnamed, foreign, plain };
  for (const one of Object.values(server)) await queryServer(one, "postgres", "CREATE DATABASE state");
});
afterAll(() => servers[Symbol.asyncDispose]());

async function accepted(connect: (one: Server) => Promise<unknown>): Promise<Name[]> {
  const names: Name[] = [];
  for (const name of NAMES) {
    const [{ status }] = await Promise.allSettled([connect(server[name])]);
    if (status === "fulfilled") names.push(name);
  }
  return names;
}

const ENCRYPTED = ["named", "misnamed", "foreign"];
const CERTIFIED = ["named", "misnamed"];
it.each([
  [undefined, false, NAMES, ENCRYPTED],
  ["disable", true, NAMES, NAMES],
  ["require", false, ENCRYPTED, ENCRYPTED],
  ["require", true, CERTIFIED, ENCRYPTED],
  ["verify-ca", false, [], []],
  ["verify-ca", true, CERTIFIED, CERTIFIED],
  ["verify-full", false, [], []],
  ["verify-full", true, ["named"], ["named"]],
])(
  "the mode %s, with its CA given: %s, accepts the database of rows where it is %j, of the state where it is %j",
  async (mode, isKnown, ofRows, ofState) => {
    const connectToRows = async ({ port }: Server) => {
      const environment = {
        ...{ PSQL_HOST: "127.0.0.1", PSQL_PORT: `${port}`, PSQL_DBNAME: "postgres", PSQL_USER: OWNER },
        ...(mode !== undefined && { PGSSLMODE: mode }),
        ...(isKnown && { PSQL_CA_FILE: ca }),
      };
      const client = new Client(poolSettings(environment)[0]);
      await client.connect();
      await client.end();
    };
    const connectToState = async ({ port }: Server) => {
      const query = mode === undefined ? "" : `?sslmode=${mode}`;
      const backend = `postgres://${OWNER}@127.0.0.1:${port}/state${query}`;
      const environment = { PULUMI_BACKEND_URL: backend, ...(isKnown && { SSL_CERT_FILE: ca }) };
      kindstack(["stacks"], { ...environment, PULUMI_CONFIG_PASSPHRASE: "p" });
    };
    expect(await accepted(connectToRows)).toEqual(ofRows);
    expect(await accepted(connectToState)).toEqual(ofState);
  },
);
