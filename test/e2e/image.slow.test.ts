import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { installKinds } from "../../src/operator/install";
import { eventually } from "../../src/testing/eventually";
import { resolveBinary } from "../../src/toolchain/resolve";
import { tools } from "../../src/toolchain/tools";
import { findCondition } from "../../stacks/contract/condition";
import { statusOf } from "../../stacks/contract/kind";
import { kinds } from "../../stacks/index";
import { USER_ID } from "../../stacks/platform/deployment";
import { controlPlane } from "../control-plane";
import { client, uniqueName } from "./objects";

/*
 * The image without Docker: what the Dockerfile's last stage copies, in an empty directory, run as the image's user.
 */

const ROOT = path.resolve(__dirname, "../..");
const dockerfile = fs.readFileSync(path.join(ROOT, "Dockerfile"), "utf8").replaceAll("\\\n", " ");
const lastStage = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));
const instruction = (name: string) =>
  [...lastStage.matchAll(new RegExp(`^${name} (.*)$`, "gm"))].map(([, words = ""]) => words);

const MEMCACHED = {
  apiVersion: "cache.example.com/v1alpha1",
  kind: "Memcached",
  plural: "memcacheds",
  namespaced: true,
};

/** Replaces the image's root directory. */
const image = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-image-"));
/** Replaces the volumes: all that the user may write to. */
const volumes = path.join(image, "volumes");

beforeAll(async () => {
  fs.chmodSync(image, 0o755);
  for (const words of instruction("COPY")) await copy(words);
  fs.mkdirSync(volumes);
  fs.chownSync(volumes, USER_ID, USER_ID);
  await installKinds(client, kinds);
}, 240_000);
afterAll(() => fs.rmSync(image, { recursive: true, force: true }));

/** Does what one COPY of the last stage does. */
async function copy(words: string): Promise<void> {
  const [, source = "", target = ""] = /^--from=\S+ (\S+) (\S+)$/.exec(words) ?? [];
  const to = path.join(image, path.resolve("/app", target));
  fs.mkdirSync(path.dirname(to), { recursive: true });
  if (source === "/pulumi") fs.copyFileSync(await resolveBinary("pulumi"), to);
  else if (source === "/pulumi-server") fs.copyFileSync(await resolveBinary("pulumi-server"), to);
  else if (source === "/app/node_modules") copyProductionPackages(to);
  else if (source === "/app/sbom.cdx.json") fs.writeFileSync(to, runLine("sbom.cdx.json"));
  else fs.cpSync(path.join(ROOT, path.relative("/app", source)), to, { recursive: true });
}

/** What the line of the Dockerfile that writes this file would write. */
function runLine(file: string): string {
  const command = new RegExp(`^RUN (.*) > ${file}$`, "m").exec(dockerfile)?.[1] ?? "false";
  return execFileSync("sh", ["-c", command], { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

/** The packages without those of development, and without what the Dockerfile removes. Links, for it is a large tree. */
function copyProductionPackages(to: string): void {
  if (spawnSync("cp", ["-al", path.join(ROOT, "node_modules"), to]).status !== 0) {
    execFileSync("cp", ["-a", path.join(ROOT, "node_modules"), to]);
  }
  const lock = JSON.parse(fs.readFileSync(path.join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, { dev?: boolean }>;
  };
  const development = Object.entries(lock.packages).flatMap(([name, { dev }]) => (dev ? [name] : []));
  const removed = /rm -rf (.*)/.exec(dockerfile)?.[1]?.split(/\s+/) ?? [];
  for (const name of [...development, ...removed]) {
    fs.rmSync(path.join(to, "..", name), { recursive: true, force: true });
  }
}

/** The image's environment, with the root directory in its paths. */
function environment(): Record<string, string> {
  const pairs = instruction("ENV").flatMap((words) => words.split(/\s+/).map((word) => word.split("=")));
  const declared = Object.fromEntries(
    pairs.map(([name = "", value = ""]) => [name, value.startsWith("/usr/") ? image + value : value]),
  );
  return { PATH: path.dirname(process.execPath), ...declared, HOME: volumes };
}

function start(words: string[], env: Record<string, string> = {}): ChildProcess {
  const [entrypoint = ""] = instruction("ENTRYPOINT");
  const [, script = ""] = JSON.parse(entrypoint) as string[];
  return spawn(process.execPath, [path.join(image, script), ...words], {
    cwd: path.join(image, "app"),
    env: { ...environment(), ...env },
    uid: USER_ID,
    gid: USER_ID,
    stdio: ["ignore", "pipe", "pipe"],
  });
}

async function run(words: string[]): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const child = start(words);
  const printed = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      printed[name] += text;
    });
  }
  const [exitCode] = (await once(child, "close")) as [number];
  return { exitCode, ...printed };
}

describe.skipIf(process.getuid?.() !== 0)("the image", () => {
  it("runs as the user that the Deployment asks for", () => {
    expect(instruction("USER")).toEqual([`${USER_ID}:${USER_ID}`]);
  });

  it("has the Pulumi CLI of the version that the SDK has, its server, and no plugin", async () => {
    const cli = path.join(image, "usr/local/bin/pulumi");
    const { version } = JSON.parse(
      fs.readFileSync(path.join(image, "app/node_modules/@pulumi/pulumi/package.json"), "utf8"),
    ) as { version: string };

    expect(dockerfile).toContain(`.Version=v${version}"`);
    expect(dockerfile).toContain(`main.Version=${tools["pulumi-server"].version}"`);
    expect(fs.readdirSync(path.dirname(cli)).sort()).toEqual(["pulumi", "pulumi-server"]);
  });

  it("is built from images that cannot change behind its back", () => {
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base = ""]) => base);

    expect(bases.filter((base) => !/^[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}$/.test(base))).toEqual([]);
  });

  it("says what it is made of, without what only development needs", () => {
    const { components } = JSON.parse(fs.readFileSync(path.join(image, "app/sbom.cdx.json"), "utf8")) as {
      components: { name: string }[];
    };
    const names = components.map(({ name }) => name);

    expect(names).toEqual(expect.arrayContaining(["pg", "undici"]));
    expect(names).not.toContain("vitest");
  });

  it("loads the large parts of Pulumi's SDKs only when a program needs them", () => {
    const script = `require(${JSON.stringify(path.join(image, "app/dist/src/cli/program.js"))}).buildProgram()
      .then(() => console.log(JSON.stringify(Object.keys(require.cache))));`;

    const loaded = JSON.parse(execFileSync(process.execPath, ["-e", script], { encoding: "utf8" })) as string[];

    expect(loaded.some((file) => file.endsWith("@pulumi/pulumi/resource.js"))).toBe(true);
    expect(loaded.filter((file) => /@pulumi\/(kubernetesx?\/|pulumi\/index\.js$)/.test(file))).toEqual([]);
  });

  it("explains itself", async () => {
    const { exitCode, stdout, stderr } = await run(["--help"]);

    expect(exitCode, stderr).toBe(0);
    expect(stdout).toContain("Usage: kindstack");
  });

  it("prints the CRDs", async () => {
    const { exitCode, stdout, stderr } = await run(["crds"]);

    expect(exitCode, stderr).toBe(0);
    expect(parse(stdout.split("---\n")[0] ?? "").kind).toBe("CustomResourceDefinition");
  });

  it("works on an object and stops when it is asked to, writing to its volumes alone", {
    timeout: 120_000,
  }, async () => {
    const kubeconfig = path.join(volumes, "kubeconfig");
    fs.copyFileSync(controlPlane().kubeconfig, kubeconfig);
    fs.chownSync(kubeconfig, USER_ID, USER_ID);
    const [command = ""] = instruction("CMD");
    const child = start([...(JSON.parse(command) as string[]), "--http-port", "0"], {
      KUBECONFIG: kubeconfig,
      KINDSTACK_WORK_DIR: path.join(volumes, "work"),
      PULUMI_BACKEND_URL: `file://${path.join(volumes, "mounted/state")}`,
      PULUMI_CONFIG_PASSPHRASE: "passphrase",
      KINDSTACK_LOG_FORMAT: "json",
    });
    let log = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        log += text;
      });
    }
    const name = uniqueName("in-image");
    try {
      await eventually(() => expect(log).toContain("caches are filled"));
      // Its program is the one that loads most.
      await client.create({
        apiVersion: MEMCACHED.apiVersion,
        kind: MEMCACHED.kind,
        metadata: { name, namespace: "default" },
        spec: { size: 1 },
      });
      await eventually(async () => {
        const object = await client.get(MEMCACHED, name, "default");
        expect(object && findCondition(statusOf(object).conditions, "Ready")?.status, log).toBe("True");
      });
      await client.delete(MEMCACHED, name, "default");
      await eventually(async () => expect(await client.get(MEMCACHED, name, "default")).toBeUndefined());
      child.kill("SIGTERM");
      expect(await once(child, "close")).toEqual([0, null]);
    } finally {
      child.kill("SIGKILL");
      if (await client.get(MEMCACHED, name, "default")) {
        await client.mergePatch(MEMCACHED, name, "default", { metadata: { finalizers: null } });
        await client.delete(MEMCACHED, name, "default");
      }
    }
  });
});
