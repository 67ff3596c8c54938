import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { programDigest } from "../../../stacks/contract/digest";
import { kinds } from "../../../stacks/kinds/index";
import { tenant } from "../../../stacks/kinds/tenant/kind";

let directory: string;
beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "kindstack-")));
  await writeFile(join(directory, "program.js"), "exports.program = () => 1;");
});
afterEach(() => rm(directory, { recursive: true }));

async function write(file: string, text: string): Promise<void> {
  await mkdir(dirname(join(directory, file)), { recursive: true });
  await writeFile(join(directory, file), text);
}

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

  it.each([
    "program.d.ts",
    "program.js.map",
    "program.test.ts",
    "test/program.js",
    "node_modules/other/index.js",
    ".hidden",
  ])("does not change with %s", async (file) => {
    const before = digest();
    await write(file, "new");
    expect(digest()).toBe(before);
  });

  it.each(["data.json", "template.yaml", "texts/greeting.tpl"])(
    "changes with %s, which the program may read",
    async (file) => {
      const before = digest();
      await write(file, "new");
      expect(digest()).not.toBe(before);
    },
  );

  it("changes with modules that the code imports from elsewhere, and with the data beside them", async () => {
    await write("kind/program.ts", 'import { label } from "../shared/label";');
    await write("shared/label.ts", 'import "./part";');
    await write("shared/part.ts", "");
    await write("other/unused.ts", "");
    const of = () => programDigest({ ...tenant, directory: join(directory, "kind") });

    const digests = [of()];
    for (const file of ["shared/label.ts", "shared/part.ts", "shared/label.json"]) {
      await write(file, 'import "./part"; // changed');
      digests.push(of());
    }
    expect(new Set(digests).size).toBe(4);
    await write("other/unused.ts", "changed");
    expect(of()).toBe(digests.at(-1));
  });

  it("changes with the versions of packages that the code imports, and of those on which they depend", async () => {
    await write("program.ts", 'import { label } from "@acme/labels/colours";');
    const manifest = (version: string) => JSON.stringify({ version, dependencies: { deep: "*", absent: "*" } });
    const versions = [
      ["@acme/labels", manifest("1.0.0")],
      ["deep", manifest("1.0.0")],
      ["@acme/labels", manifest("1.0.1")],
      ["deep", manifest("1.0.1")],
    ];
    const digests: string[] = [];
    for (const [name, text = ""] of versions) {
      // Of installed packages, a process reads each package.json once.
      const [from, to] = [directory, `${directory}-${digests.length}`];
      await cp(from, to, { recursive: true });
      await rm(from, { recursive: true });
      directory = to;
      await write(`node_modules/${name}/package.json`, text);
      digests.push(digest());
    }
    expect(new Set(digests).size).toBe(versions.length);
  });

  it("changes with the files of a package that is linked", async () => {
    await write("kinds/one/program.ts", 'const { label } = require("shared");');
    await write("shared/package.json", "{}");
    await write("shared/lib/label.js", "1");
    await mkdir(join(directory, "kinds/node_modules"));
    await symlink("../../shared", join(directory, "kinds/node_modules/shared"));
    const of = () => programDigest({ ...tenant, directory: join(directory, "kinds/one") });

    const before = of();
    await write("shared/lib/label.js", "2");
    expect(of()).not.toBe(before);
  });

  it("changes with the settings that the kind reads", () => {
    const of = (setting: string) => programDigest({ directory, capabilities: { settings: () => ({ setting }) } });
    expect(of("a")).not.toBe(of("b"));
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

  it("is different for each kind", () => {
    expect(new Set(kinds.map((kind) => programDigest(kind))).size).toBe(kinds.length);
  });
});
