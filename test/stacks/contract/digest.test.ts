import { appendFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { programDigest } from "../../../stacks/contract/digest";
import { kinds } from "../../../stacks/kinds/index";
import { tenant } from "../../../stacks/kinds/tenant/kind";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "kindstack-"));
  await writeFile(join(directory, "program.js"), "exports.program = () => 1;");
});
afterEach(() => rm(directory, { recursive: true }));

const digest = () => programDigest({ ...tenant, directory });

describe("programDigest", () => {
  it("is the same for the same code", () => {
    expect(digest()).toBe(digest());
    expect(digest()).toMatch(/^[0-9a-f]{16}$/);
  });

  it("changes with the code, in sub-folders as well", async () => {
    const before = digest();
    await writeFile(join(directory, "program.js"), "exports.program = () => 2;");
    const changed = digest();
    await mkdir(join(directory, "parts"));
    await writeFile(join(directory, "parts", "part.js"), "");
    expect(new Set([before, changed, digest()]).size).toBe(3);
  });

  it("changes when code moves to another file", async () => {
    const before = digest();
    await rm(join(directory, "program.js"));
    await writeFile(join(directory, "renamed.js"), "exports.program = () => 1;");
    expect(digest()).not.toBe(before);
  });

  it("does not change with a sample, a type declaration or a source map", async () => {
    const before = digest();
    for (const file of ["sample.yaml", "program.d.ts", "program.d.mts", "program.js.map"])
      await writeFile(join(directory, file), "new");
    expect(digest()).toBe(before);
  });

  it("changes with the modules of providers that the code uses, and with no other", async () => {
    const providers = join(directory, "providers");
    const folder = join(directory, "stacks", "kind");
    await mkdir(join(providers, "rows"), { recursive: true });
    await mkdir(folder, { recursive: true });
    const write = (file: string, text: string) => writeFile(join(directory, file), text);
    await write("stacks/kind/program.js", 'const row = require("../../providers/rows/row");');
    await write("providers/rows/row.js", 'const pool = require("./pool");');
    await write("providers/rows/pool.js", 'import("../errors");');
    await write("providers/errors.js", "");
    await write("providers/objects.js", 'require("./errors")');
    const digests = () => programDigest({ directory: folder, capabilities: {} }, providers);

    const before = digests();
    await write("providers/objects.js", "changed");
    expect(digests()).toBe(before);
    for (const file of ["providers/rows/row.js", "providers/rows/pool.js", "providers/errors.js"]) {
      const unchanged = digests();
      await appendFile(join(directory, file), " // changed");
      expect(digests()).not.toBe(unchanged);
    }
  });

  it("changes with other modules of the kind's package, and with providers that it imports from this one", async () => {
    const folder = join(directory, "src/notice");
    await mkdir(folder, { recursive: true });
    await mkdir(join(directory, "src/shared"));
    await writeFile(
      join(folder, "program.ts"),
      'import { label } from "../shared/label";\nimport { KubernetesObject } from "kindstack/providers/kubernetes";',
    );
    await writeFile(join(directory, "src/shared/label.ts"), "");
    const own = { directory: folder, capabilities: {} };

    const before = programDigest(own);
    await writeFile(join(directory, "src/shared/label.ts"), "changed");
    expect(programDigest(own)).not.toBe(before);
    expect(programDigest(own, join(directory, "nowhere"))).not.toBe(programDigest(own));
  });

  it.each([
    ["own.mjs", ""],
    ["own.cjs", ""],
    ["own.mts", ""],
    ["../shared/label.mjs", "../shared/label.mjs"],
    ["../shared/label.ts", "../shared/label.js"],
    ["../shared/label.mts", "../shared/label.mjs"],
  ])("changes with the module %s, imported as '%s'", async (file, specifier) => {
    const folder = join(directory, "kind");
    await mkdir(folder);
    await mkdir(join(directory, "shared"));
    await writeFile(join(folder, "program.mjs"), specifier && `export * from "${specifier}";`);
    await writeFile(join(folder, file), "");
    const own = { directory: folder, capabilities: {} };

    const before = programDigest(own);
    await writeFile(join(folder, file), "changed");
    expect(programDigest(own)).not.toBe(before);
  });

  it("covers the provider of each kind's resources", () => {
    const providers = resolve(__dirname, "../../../providers");
    for (const kind of kinds) {
      const elsewhere = programDigest(kind, join(providers, "nowhere"));
      expect(programDigest(kind)).not.toBe(elsewhere);
    }
  });

  it("is different for each kind", () => {
    expect(new Set(kinds.map((kind) => programDigest(kind))).size).toBe(kinds.length);
  });
});
