import { readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import {
  type DynamicProvider,
  DynamicResource,
  type DynamicResourceOptions,
  defineProvider,
  type ProviderContext,
  RetryableError,
  TerminalError,
} from "kindstack";

/** What a program gives. */
export interface NewKindInputs {
  name: string;
  /** Whose it is; written on it, so that nothing of another owner is changed or deleted. */
  owner: string;
  text: string;
}

/** What the state records. */
export interface NewKindOutputs extends NewKindInputs {
  /** `false` for what was there before without an owner: it is released, not deleted. */
  created: boolean;
}

/** What the system has: replace the files by your own system. */
interface Stored {
  owner: string;
  text: string;
  /** It was there before without an owner. The system keeps this too: a crash may come before the state records it. */
  adopted?: boolean;
}

const methods: DynamicProvider<NewKindInputs, NewKindOutputs> = {
  identify: ({ name }) => name,

  async check(_olds, news) {
    const failures: { property: string; reason: string }[] = [];
    const { name, text } = news as Partial<NewKindInputs>;
    if (typeof name !== "string" || !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) {
      const reason = `${JSON.stringify(name)} must be up to 63 lower-case letters, digits and dashes`;
      failures.push({ property: "name", reason });
    }
    if (typeof text !== "string" || text === "") failures.push({ property: "text", reason: "must not be empty" });
    return { inputs: news, failures };
  },

  async diff(_id, olds, news) {
    if (olds.name !== news.name) return { changes: true, replaces: ["name"] };
    return { changes: olds.text !== news.text || olds.owner !== news.owner };
  },

  async create({ name, owner, text }, context) {
    const found = await find(name);
    // A crash may come between a create and its record in the state: the second create finds its own.
    if (found !== undefined && found.owner !== "" && found.owner !== owner) {
      throw new TerminalError("Conflict", `${name} belongs to ${found.owner}`);
    }
    const adopted = found?.owner === "" || found?.adopted === true;
    await store(name, { owner, text, adopted }, context);
    return { id: name, outs: { name, owner, text, created: !adopted } };
  },

  async read(id, outs) {
    const found = await find(id);
    return found === undefined ? {} : { id, props: { ...outs, owner: found.owner, text: found.text } };
  },

  async update(id, { created }, { name, owner, text }, context) {
    await store(id, { owner, text, adopted: !created }, context);
    return { outs: { name, owner, text, created } };
  },

  async delete(id, outs, context) {
    if (!outs.created) return methods.release(id, outs, context);
    if ((await find(id))?.owner !== outs.owner) return; // it is gone, or another owner's by now
    await classified(() => {
      context?.fence.check();
      return rm(fileOf(id), { force: true });
    });
  },

  async release(id, outs, context) {
    const found = await find(id);
    if (found?.owner === outs.owner) await store(id, { owner: "", text: found.text }, context);
  },

  /** Holds an update to a plan: it overwrites only what the plan saw. `null` is nothing. */
  async observe(inputs, outs) {
    const found = await find((inputs ?? outs)?.name ?? "");
    if (inputs === undefined) return found?.owner === outs?.owner ? found : null;
    // A crash may come between a write and its record in the state: what is as it is to be was written by this plan.
    if (found?.owner === inputs.owner && found.text === inputs.text) return null;
    return found ?? (outs === undefined ? null : "gone");
  },
};

/** The name under which the Pulumi project finds this module, and the provider. */
export const { stub, provider } = defineProvider("new-package/dist/new-kind", methods);

export class NewKind extends DynamicResource {
  constructor(name: string, inputs: NewKindInputs, options?: DynamicResourceOptions) {
    super({ module: "new-kind", name: "NewKind", stub }, name, { ...inputs }, options);
  }
}

/** Settings and credentials come from the environment when a method runs. They are never inputs or outputs. */
function fileOf(name: string): string {
  const folder = process.env.NEW_KIND_FOLDER;
  if (!folder) throw new TerminalError("Misconfigured", "NEW_KIND_FOLDER must name a folder");
  return path.join(folder, `${name}.json`);
}

async function find(name: string): Promise<Stored | undefined> {
  const file = fileOf(name);
  const text = await classified(() => readFile(file, "utf8").catch(ifMissing));
  return text === undefined ? undefined : (JSON.parse(text) as Stored);
}

function ifMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

async function store(name: string, stored: Stored, context: ProviderContext | undefined): Promise<void> {
  const file = fileOf(name);
  await classified(() => {
    context?.fence.check();
    return writeFile(file, JSON.stringify(stored));
  });
}

/** Terminal: only a user can help. Retryable: time may help. What is not classified here is reported as a bug. */
async function classified<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    if (["EACCES", "EPERM", "EROFS"].includes(code)) throw new RetryableError("PermissionDenied", message);
    if (["ENOENT", "ENOTDIR", "ENOSPC"].includes(code)) throw new RetryableError("SystemError", message);
    throw error;
  }
}
