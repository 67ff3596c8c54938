import type { Files } from "./kind-files";
import type { NewKindNames } from "./names";

/**
 * A dynamic provider in a package, with a test of each method. It is complete as it is: its system is a folder, so that
 * nothing needs to be set up before the first test.
 *
 * @param packageName the package's name, which states record to find the provider
 */
export function providerFiles({ kind, folder }: Pick<NewKindNames, "kind" | "folder">, packageName: string): Files {
  const variable = `${folder.replaceAll("-", "_").toUpperCase()}_FOLDER`;
  const source = `import { readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import type { CustomResourceOptions } from "@pulumi/pulumi/resource";
import {
  checkFence,
  type DynamicProvider,
  DynamicResource,
  defineProvider,
  RetryableError,
  TerminalError,
} from "kindstack";

/** What a program gives. */
export interface ${kind}Inputs {
  name: string;
  /** Whose it is; written on it, so that nothing of another owner is changed or deleted. */
  owner: string;
  text: string;
}

/** What the state records. */
export interface ${kind}Outputs extends ${kind}Inputs {
  /** \`false\` for what was there before without an owner: it is released, not deleted. */
  created: boolean;
}

/** What the system has: replace the files by your own system. */
interface Stored {
  owner: string;
  text: string;
  /** It was there before without an owner. The system keeps this too: a crash may come before the state records it. */
  adopted?: boolean;
}

const methods: DynamicProvider<${kind}Inputs, ${kind}Outputs> = {
  async check(_olds, news) {
    const failures: { property: string; reason: string }[] = [];
    const { name, text } = news as Partial<${kind}Inputs>;
    if (typeof name !== "string" || !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) {
      const reason = \`\${JSON.stringify(name)} must be up to 63 lower-case letters, digits and dashes\`;
      failures.push({ property: "name", reason });
    }
    if (typeof text !== "string" || text === "") failures.push({ property: "text", reason: "must not be empty" });
    return { inputs: news, failures };
  },

  async diff(_id, olds, news) {
    if (olds.name !== news.name) return { changes: true, replaces: ["name"] };
    return { changes: olds.text !== news.text || olds.owner !== news.owner };
  },

  async create({ name, owner, text }) {
    const found = await find(name);
    // A crash may come between a create and its record in the state: the second create finds its own.
    if (found !== undefined && found.owner !== "" && found.owner !== owner) {
      throw new TerminalError("Conflict", \`\${name} belongs to \${found.owner}\`);
    }
    const adopted = found?.owner === "" || found?.adopted === true;
    await store(name, { owner, text, adopted });
    return { id: name, outs: { name, owner, text, created: !adopted } };
  },

  async read(id, outs) {
    const found = await find(id);
    return found === undefined ? {} : { id, props: { ...outs, owner: found.owner, text: found.text } };
  },

  async update(id, { created }, { name, owner, text }) {
    await store(id, { owner, text, adopted: !created });
    return { outs: { name, owner, text, created } };
  },

  async delete(id, outs) {
    if (!outs.created) return methods.release(id, outs);
    if ((await find(id))?.owner !== outs.owner) return; // it is gone, or another owner's by now
    await classified(() => {
      checkFence();
      return rm(fileOf(id), { force: true });
    });
  },

  async release(id, outs) {
    const found = await find(id);
    if (found?.owner === outs.owner) await store(id, { owner: "", text: found.text });
  },
};

/** The name under which the Pulumi project finds this module, and the provider. */
export const { stub, provider } = defineProvider("${packageName}/dist/${folder}", methods);

export class ${kind} extends DynamicResource {
  constructor(name: string, inputs: ${kind}Inputs, options?: CustomResourceOptions) {
    super({ module: "${folder}", name: "${kind}", stub }, name, { ...inputs }, options);
  }
}

/** Settings and credentials come from the environment when a method runs. They are never inputs or outputs. */
function fileOf(name: string): string {
  const folder = process.env.${variable};
  if (!folder) throw new TerminalError("Misconfigured", "${variable} must name a folder");
  return path.join(folder, \`\${name}.json\`);
}

async function find(name: string): Promise<Stored | undefined> {
  const file = fileOf(name);
  const text = await classified(() => readFile(file, "utf8").catch(ifMissing));
  return text === undefined ? undefined : (JSON.parse(text) as Stored);
}

function ifMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

async function store(name: string, stored: Stored): Promise<void> {
  const file = fileOf(name);
  await classified(() => {
    checkFence();
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
`;
  const test = `import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { checkLifecycle } from "kindstack/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { provider } from "../src/${folder}";

const inputs = { name: "one", owner: "default/one", text: "Sunday" };
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "${folder}-"));
  process.env.${variable} = folder;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const stored = (name: string) => JSON.parse(readFileSync(path.join(folder, \`\${name}.json\`), "utf8"));

describe("the provider of ${kind}", () => {
  it("takes a resource through its life", async () => {
    await checkLifecycle(provider, inputs, { ...inputs, text: "Monday" });
  });

  it("names each property that is wrong", async () => {
    const { failures } = await provider.check({}, { name: "No", owner: "default/one", text: "" });
    expect(failures.map(({ property }) => property)).toEqual(["name", "text"]);
  });

  it("replaces for another name", async () => {
    expect(await provider.diff("one", inputs, { ...inputs, name: "two" })).toMatchObject({ replaces: ["name"] });
  });

  it("takes nothing of another owner, and deletes nothing of it", async () => {
    const { id, outs } = await provider.create(inputs);
    const other = { ...inputs, owner: "default/other" };
    await expect(provider.create(other)).rejects.toMatchObject({ errorClass: "terminal", reason: "Conflict" });
    await provider.delete(id, { ...outs, owner: "default/other" });
    expect(stored("one")).toEqual({ owner: "default/one", text: "Sunday", adopted: false });
  });

  it("adopts what has no owner, and leaves it there", async () => {
    writeFileSync(path.join(folder, "one.json"), JSON.stringify({ owner: "", text: "Friday" }));
    const { id, outs } = await provider.create(inputs);
    expect(stored("one")).toEqual({ owner: "default/one", text: "Sunday", adopted: true });
    await provider.delete(id, outs);
    expect(stored("one")).toEqual({ owner: "", text: "Sunday" });
  });

  it("remembers that it adopted when a crash has kept that out of the state", async () => {
    writeFileSync(path.join(folder, "one.json"), JSON.stringify({ owner: "", text: "Friday" }));
    await provider.create(inputs);
    const { id, outs } = await provider.create(inputs);
    await provider.delete(id, outs);
    expect(stored("one")).toEqual({ owner: "", text: "Sunday" });
  });

  it("finds nothing where someone else has deleted it", async () => {
    const { id, outs } = await provider.create(inputs);
    rmSync(path.join(folder, "one.json"));
    expect(await provider.read(id, outs)).toEqual({});
    await provider.delete(id, outs);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("says whether time or a user can help", async () => {
    rmSync(folder, { recursive: true });
    await expect(provider.create(inputs)).rejects.toMatchObject({ errorClass: "retryable", reason: "SystemError" });
    delete process.env.${variable};
    await expect(provider.create(inputs)).rejects.toMatchObject({ errorClass: "terminal", reason: "Misconfigured" });
  });
});
`;
  return { [`src/${folder}.ts`]: source, [`test/${folder}.test.ts`]: test };
}
