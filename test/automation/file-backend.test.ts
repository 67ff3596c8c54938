import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HISTORY_LIMIT, stackPaths } from "../../src/automation/backend";
import { crashSafeBackendUrl, createStack, FileBackend, fileBackendDirectory } from "../../src/automation/file-backend";

const TEMPLATE = JSON.stringify({ version: 3, checkpoint: { stack: "organization/kindstack/template", latest: null } });
let directory: string;

beforeEach(async () => {
  directory = join(await mkdtemp(join(tmpdir(), "kindstack-")), ".pulumi");
});
afterEach(() => rm(dirname(directory), { recursive: true }));

const pathOf = (stack: string) => stackPaths(directory, stack).checkpoint;
const backend = () => new FileBackend(directory, TEMPLATE);

async function touch(...paths: string[]): Promise<void> {
  for (const path of paths) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, "{}");
  }
}

const filesOf = async (path: string) =>
  (await readdir(path, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);

describe("crashSafeBackendUrl", () => {
  it("asks for no files of attributes, and keeps what was asked for", () => {
    expect(crashSafeBackendUrl("file:///var/lib/a%20b")).toBe("file:///var/lib/a%20b?metadata=skip");
    expect(crashSafeBackendUrl("file://~/state?no_tmp_dir=true")).toBe("file://~/state?no_tmp_dir=true&metadata=skip");
  });

  it("leaves other backends alone", () => {
    expect(crashSafeBackendUrl("s3://bucket?region=x")).toBe("s3://bucket?region=x");
  });
});

describe("fileBackendDirectory", () => {
  it("is the folder that the CLI makes in the URL's directory", () => {
    expect(fileBackendDirectory("file:///var/lib/kindstack")).toBe("/var/lib/kindstack/.pulumi");
  });

  it("understands escapes and leaves the query out", () => {
    expect(fileBackendDirectory("file:///var/lib/my%20state?no_tmp_dir=true")).toBe("/var/lib/my state/.pulumi");
  });

  it.each(["postgres://host/db", "s3://bucket"])("is none for %s", (url) => {
    expect(fileBackendDirectory(url)).toBeUndefined();
  });
});

describe("what an update that was cut off was about to do", () => {
  const pending = { type: "creating", resource: { urn: "urn:pulumi:acme::kindstack::t::a" } };
  const latest = {
    manifest: { time: "2026-01-01T00:00:00Z" },
    resources: [{ urn: "urn:pulumi:acme::kindstack::t::b" }],
  };

  it("goes from the state, and nothing else does", async () => {
    const checkpoint = { stack: "organization/kindstack/acme", latest: { ...latest, pending_operations: [pending] } };
    await createStack(directory, "acme", JSON.stringify({ version: 3, checkpoint }));
    await backend().forgetPendingCreates("acme");
    const path = pathOf("acme");
    expect(JSON.parse(await readFile(path, "utf8"))).toEqual({ version: 3, checkpoint: { ...checkpoint, latest } });
    expect(await readdir(dirname(path))).toEqual(["acme.json"]);
  });

  it("is nothing in a new stack, nor in one that is not there", async () => {
    await createStack(directory, "acme", TEMPLATE);
    const path = pathOf("acme");
    const before = await readFile(path, "utf8");
    await backend().forgetPendingCreates("acme");
    await backend().forgetPendingCreates("other");
    expect(await readFile(path, "utf8")).toBe(before);
    expect(await readdir(dirname(path))).toEqual(["acme.json"]);
  });
});

describe("a compressed checkpoint", () => {
  it("is a stack's, with its name and state, and no empty stack is made beside it", async () => {
    const path = `${pathOf("acme")}.gz`;
    const latest = { resources: [{ urn: "urn:pulumi:acme::kindstack::t::a", type: "t" }] };
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, gzipSync(JSON.stringify({ version: 3, checkpoint: { latest } })));
    await backend().createMissing("acme");
    expect(await readdir(dirname(path))).toEqual(["acme.json.gz"]);
    expect(await backend().names()).toEqual(["acme"]);
    expect(await backend().state("acme")).toEqual({ version: 3, deployment: latest });
  });
});

describe("createStack", () => {
  it("writes an empty stack of that name, and that the layout is version 1", async () => {
    await createStack(directory, "acme", TEMPLATE);
    const checkpoint = JSON.parse(await readFile(pathOf("acme"), "utf8"));
    expect(checkpoint).toEqual({ version: 3, checkpoint: { stack: "organization/kindstack/acme", latest: null } });
    expect(await readFile(join(directory, "meta.yaml"), "utf8")).toBe("version: 1\n");
    expect(await backend().state("acme")).toMatchObject({ deployment: {} });
  });

  it("leaves nothing else behind, and lets no other client read the state", async () => {
    await createStack(directory, "acme", TEMPLATE);
    expect((await filesOf(directory)).sort()).toEqual(["acme.json", "meta.yaml"]);
    expect((await stat(pathOf("acme"))).mode & 0o077).toBe(0);
  });

  it("never shows half a checkpoint under the stack's name", async () => {
    const large = JSON.stringify({ ...JSON.parse(TEMPLATE), padding: "x".repeat(4_000_000) });
    const path = pathOf("acme");
    let done = false;
    const creating = createStack(directory, "acme", large).then(() => {
      done = true;
    });
    while (!done) {
      const seen = await readFile(path, "utf8").catch(() => undefined);
      if (seen !== undefined) expect(() => JSON.parse(seen)).not.toThrow();
    }
    await creating;
    expect(await backend().state("acme")).toMatchObject({ deployment: {} });
  });

  it("leaves nothing behind when it fails", async () => {
    const path = pathOf("acme");
    await mkdir(path, { recursive: true }); // so that it cannot be written
    await expect(createStack(directory, "acme", TEMPLATE)).rejects.toThrow();
    expect(await filesOf(directory)).toEqual(["meta.yaml"]);
  });

  it("says which layout it is also where a full disk has left that file empty", async () => {
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, "meta.yaml"), "");
    await createStack(directory, "acme", TEMPLATE);
    expect(await readFile(join(directory, "meta.yaml"), "utf8")).toBe("version: 1\n");
  });

  it("does not touch what says so", async () => {
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, "meta.yaml"), "version: 1 # ours\n");
    await createStack(directory, "acme", TEMPLATE);
    expect(await readFile(join(directory, "meta.yaml"), "utf8")).toBe("version: 1 # ours\n");
  });

  it("makes several stacks at once in a backend that does not exist yet", async () => {
    const names = Array.from({ length: 10 }, (_, index) => `stack-${index}`);
    await Promise.all(names.map((name) => createStack(directory, name, TEMPLATE)));
    expect((await readdir(join(directory, "stacks", "kindstack"))).sort()).toEqual(names.map((name) => `${name}.json`));
  });
});

describe("cutHistory", () => {
  const history = (stack: string) => join(directory, "history", "kindstack", stack);
  const update = (stack: string, time: bigint) =>
    ["history.json", "checkpoint.json"].map((kind) => join(history(stack), `${stack}-${time}.${kind}`));

  it(`keeps the ${HISTORY_LIMIT} newest updates, by number and not by text`, async () => {
    const times = Array.from({ length: 30 }, (_, index) => 9_999_999_999_999_999_990n + BigInt(index));
    await touch(...times.flatMap((time) => update("acme", time)));
    await backend().cutHistory("acme");
    const kept = times.slice(-HISTORY_LIMIT).flatMap((time) => update("acme", time));
    expect((await readdir(history("acme"))).sort()).toEqual(
      kept.map((path) => path.slice(history("acme").length + 1)).sort(),
    );
  });

  it("counts an update once, compressed files and attributes included", async () => {
    const names = Array.from({ length: HISTORY_LIMIT + 1 }, (_, index) => `acme-${100 + index}`);
    const suffixes = [".history.json", ".history.json.attrs", ".checkpoint.json.gz"];
    await touch(...names.flatMap((name) => suffixes.map((suffix) => join(history("acme"), name + suffix))));
    await backend().cutHistory("acme");
    expect(await readdir(history("acme"))).toHaveLength(HISTORY_LIMIT * suffixes.length);
  });

  it("leaves a short history, other files and other stacks alone", async () => {
    await touch(...update("acme", 1n), join(history("acme"), "README"), ...update("globex", 1n));
    await backend().cutHistory("acme");
    expect(await filesOf(join(directory, "history"))).toHaveLength(5);
  });

  it("accepts a stack without history", async () => {
    await expect(backend().cutHistory("missing")).resolves.toBeUndefined();
  });
});

describe("remove", () => {
  it("removes backups, history, locks and temporary files of the stack, and nothing of another whose name begins the same", async () => {
    const filesFor = (stack: string) => [
      `${pathOf(stack)}.bak`,
      `${pathOf(stack)}.bak.18ea03d61181474f.tmp`,
      join(directory, "stacks", "kindstack", `.${stack}.json.1.tmp`),
      join(directory, "backups", "kindstack", stack, `${stack}.1.json`),
      join(directory, "history", "kindstack", stack, `${stack}-1.history.json`),
      join(directory, "locks", "organization", "kindstack", stack, "1.json"),
    ];
    await touch(...filesFor("acme"), ...filesFor("acme-2"));
    await backend().remove("acme");
    const left = await filesOf(directory);
    expect(left.sort()).toEqual([
      ".acme-2.json.1.tmp",
      "1.json",
      "acme-2-1.history.json",
      "acme-2.1.json",
      "acme-2.json.bak",
      "acme-2.json.bak.18ea03d61181474f.tmp",
    ]);
  });
});
