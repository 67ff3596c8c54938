import type { Output } from "@pulumi/pulumi/output";
import { Client, DatabaseError } from "pg";
import {
  type DynamicProvider,
  DynamicResource,
  type DynamicResourceOptions,
  defineProvider,
  RetryableError,
  TerminalError,
} from "../../stacks/contract/index";

/** What a program gives. */
export interface SchemaInputs {
  /** The schema's name: lower-case letters, digits and underscores. */
  name: string;
  /** Whose it is; written on the schema as its comment. */
  owner: string;
}

/** What the state records. */
export interface SchemaOutputs extends SchemaInputs {
  /** `false` for a schema that was there before: it is released, not dropped. */
  created: boolean;
}

const schemas: DynamicProvider<SchemaInputs, SchemaOutputs> = {
  identify: ({ name }) => name,

  async check(_olds, news) {
    const valid = typeof news.name === "string" && /^[a-z_][a-z0-9_]{0,62}$/.test(news.name);
    const reason = `${JSON.stringify(news.name)} must be lower-case letters, digits and underscores`;
    return { inputs: news, failures: valid ? [] : [{ property: "name", reason }] };
  },

  async diff(_id, olds, news) {
    if (olds.name !== news.name) return { changes: true, replaces: ["name"] };
    return { changes: olds.owner !== news.owner };
  },

  async create({ name, owner }, context) {
    return connected(async (client) => {
      const holder = await ownerOf(client, name);
      // A crash may come between a create and its record in the state: the second create finds its own schema.
      if (holder !== undefined && holder !== null && holder !== owner) {
        throw new TerminalError("Conflict", `the schema ${name} belongs to ${holder}`);
      }
      context?.fence.check();
      await client.query("BEGIN");
      if (holder === undefined) await client.query(`CREATE SCHEMA ${client.escapeIdentifier(name)}`);
      await comment(client, name, owner);
      await client.query("COMMIT");
      return { id: name, outs: { name, owner, created: holder !== null } };
    });
  },

  async read(id, outs) {
    return connected(async (client) => {
      const owner = await ownerOf(client, outs.name);
      return owner === undefined ? {} : { id, props: { ...outs, owner: owner ?? "" } };
    });
  },

  async update(_id, olds, { name, owner }, context) {
    return connected(async (client) => {
      context?.fence.check();
      await comment(client, name, owner);
      return { outs: { name, owner, created: olds.created } };
    });
  },

  async delete(id, outs, context) {
    if (!outs.created) return schemas.release(id, outs, context);
    await connected(async (client) => {
      if ((await ownerOf(client, outs.name)) !== outs.owner) return; // it is gone, or another owner's by now
      context?.fence.check();
      await client.query(`DROP SCHEMA ${client.escapeIdentifier(outs.name)}`); // never CASCADE: the tables are the users'
    });
  },

  async release(_id, outs, context) {
    await connected(async (client) => {
      if ((await ownerOf(client, outs.name)) !== outs.owner) return;
      context?.fence.check();
      await comment(client, outs.name, null);
    });
  },

  async observe(inputs, outs) {
    const name = (inputs ?? outs)?.name ?? "";
    const holder = await connected((client) => ownerOf(client, name));
    if (inputs === undefined) return holder === outs?.owner ? holder : null;
    if (holder === inputs.owner) return null; // a crash may come between a write and its record in the state
    if (holder === undefined) return outs === undefined ? null : "gone";
    return { holder };
  },
};

/** The name under which this module can be imported from the Pulumi project, and the provider. */
export const { stub, provider } = defineProvider("@acme/kinds/postgres-schema", schemas);

/** A schema of a PostgreSQL database. */
export class PostgresSchema extends DynamicResource {
  declare readonly created: Output<boolean>;

  constructor(name: string, inputs: SchemaInputs, options?: DynamicResourceOptions) {
    super({ module: "acme", name: "PostgresSchema", stub }, name, { ...inputs, created: undefined }, options);
  }
}

/** @returns `null` for a schema without an owner, `undefined` for none */
async function ownerOf(client: Client, name: string): Promise<string | null | undefined> {
  const { rows } = await client.query(
    "SELECT obj_description(oid, 'pg_namespace') AS owner FROM pg_namespace WHERE nspname = $1",
    [name],
  );
  return rows[0]?.owner;
}

async function comment(client: Client, name: string, text: string | null): Promise<void> {
  const literal = text === null ? "NULL" : client.escapeLiteral(text);
  await client.query(`COMMENT ON SCHEMA ${client.escapeIdentifier(name)} IS ${literal}`);
}

/** Credentials come from the environment when a method runs. They are never inputs or outputs. */
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
    if (error.code === "2BP01") return new TerminalError("Conflict", `${error.message}: it still has tables`);
    if (error.code === "42501") return new RetryableError("PermissionDenied", error.message);
    if (error.code?.startsWith("57")) return new RetryableError("DatabaseUnavailable", error.message);
  }
  const isRefused = (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
  return isRefused ? new RetryableError("ConnectionRefused", "cannot connect to the database of schemas") : error;
}
