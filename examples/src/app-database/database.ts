import { randomBytes } from "node:crypto";
import type { Output } from "@pulumi/pulumi/output";
import {
  type DynamicProvider,
  DynamicResource,
  type DynamicResourceOptions,
  defineProvider,
  RetryableError,
  TerminalError,
} from "kindstack";
import { Client, DatabaseError } from "pg";

/** What a program gives. */
export interface DatabaseInputs {
  name: string;
  /** Whose it is; written on the role as its comment. */
  owner: string;
  /** With another number, the role gets another password. */
  rotation: number;
}

/** What the state records. */
export interface DatabaseOutputs extends DatabaseInputs {
  /** Encrypted in the state, see {@link Database}. */
  password: string;
}

const databases: DynamicProvider<DatabaseInputs, DatabaseOutputs> = {
  identify: ({ name }) => name,

  async check(_olds, news) {
    return { inputs: news, failures: [] }; // the schema of the kind has checked the name
  },

  async diff(_id, olds, news) {
    if (olds.name !== news.name) return { changes: true, replaces: ["name"] };
    return { changes: olds.rotation !== news.rotation || olds.owner !== news.owner };
  },

  async create(inputs, context) {
    const { name, owner } = inputs;
    return connected(async (client) => {
      const holder = await ownerOf(client, name);
      // A crash may come between a create and its record in the state: the second create finds its own role.
      if (holder !== undefined && holder !== owner) {
        throw new TerminalError("Conflict", `the role ${name} belongs to ${holder ?? "someone else"}`);
      }
      const role = client.escapeIdentifier(name);
      if (holder === undefined) {
        context?.fence.check();
        await client.query(
          `BEGIN; CREATE ROLE ${role}; COMMENT ON ROLE ${role} IS ${client.escapeLiteral(owner)}; COMMIT`,
        );
      }
      const owned = await databaseOwner(client, name);
      if (owned !== undefined && owned !== name) {
        throw new TerminalError("Conflict", `the database ${name} belongs to the role ${owned}`);
      }
      context?.fence.check();
      if (owned === undefined) await client.query(`CREATE DATABASE ${role} OWNER ${role}`);
      return { id: name, outs: { ...inputs, password: await setPassword(client, name) } };
    });
  },

  async read(id, outs) {
    return connected(async (client) => {
      const owner = await ownerOf(client, id);
      if (owner === undefined || (await databaseOwner(client, id)) === undefined) return {};
      return { id, props: { ...outs, owner: owner ?? "" } };
    });
  },

  async update(id, olds, news, context) {
    return connected(async (client) => {
      context?.fence.check();
      if (olds.owner !== news.owner) await comment(client, id, news.owner);
      const password = olds.rotation === news.rotation ? olds.password : await setPassword(client, id);
      return { outs: { ...news, password } };
    });
  },

  async delete(id, outs, context) {
    await connected(async (client) => {
      if ((await ownerOf(client, id)) !== outs.owner) return; // it is gone, or another owner's by now
      const role = client.escapeIdentifier(id);
      context?.fence.check();
      if ((await databaseOwner(client, id)) === id) await client.query(`DROP DATABASE ${role} WITH (FORCE)`);
      await client.query(`DROP ROLE ${role}`);
    });
  },

  async release(id, outs, context) {
    await connected(async (client) => {
      if ((await ownerOf(client, id)) !== outs.owner) return;
      context?.fence.check();
      await comment(client, id, null);
    });
  },
};

/** The name under which the Pulumi project finds this module, and the provider. */
export const { stub, provider } = defineProvider("kindstack-examples/dist/app-database/database", databases);

/** A database of PostgreSQL with a role of its own. */
export class Database extends DynamicResource {
  declare readonly password: Output<string>;

  constructor(name: string, inputs: DatabaseInputs, options?: DynamicResourceOptions) {
    super(
      { module: "examples", name: "Database", stub },
      name,
      { ...inputs, password: undefined },
      {
        ...options,
        additionalSecretOutputs: ["password"],
      },
    );
  }
}

/** @returns `null` for a role without an owner, `undefined` for none */
async function ownerOf(client: Client, name: string): Promise<string | null | undefined> {
  const { rows } = await client.query(
    "SELECT shobj_description(oid, 'pg_authid') AS owner FROM pg_roles WHERE rolname = $1",
    [name],
  );
  return rows[0]?.owner;
}

async function databaseOwner(client: Client, name: string): Promise<string | undefined> {
  const { rows } = await client.query("SELECT pg_get_userbyid(datdba) AS role FROM pg_database WHERE datname = $1", [
    name,
  ]);
  return rows[0]?.role;
}

async function comment(client: Client, name: string, text: string | null): Promise<void> {
  const literal = text === null ? "NULL" : client.escapeLiteral(text);
  await client.query(`COMMENT ON ROLE ${client.escapeIdentifier(name)} IS ${literal}`);
}

/** A new password for each call. It is returned for the state, and said nowhere else. */
async function setPassword(client: Client, name: string): Promise<string> {
  const password = randomBytes(24).toString("base64url");
  await client.query(`ALTER ROLE ${client.escapeIdentifier(name)} LOGIN PASSWORD ${client.escapeLiteral(password)}`);
  return password;
}

/** As a role that may create others. */
async function connected<T>(work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  try {
    await client.connect();
    return await work(client);
  } catch (error) {
    throw classified(error);
  } finally {
    await client.end();
  }
}

/** Terminal: only a user can help. Retryable: time may help. What is not classified here is reported as a bug. */
function classified(error: unknown): unknown {
  if (error instanceof DatabaseError) {
    if (error.code === "42501") return new RetryableError("PermissionDenied", error.message);
    if (error.code?.startsWith("57")) return new RetryableError("DatabaseUnavailable", error.message);
  }
  const isRefused = (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
  return isRefused ? new RetryableError("ConnectionRefused", "cannot connect to the databases' server") : error;
}
