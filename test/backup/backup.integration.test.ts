import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { secret } from "@pulumi/pulumi/output";
import { beforeAll, describe, expect, it } from "vitest";
import { resolveBinary } from "../../src/toolchain/resolve";
import { TestEngine } from "../automation/test-engine";
import { Thing } from "../automation/things";
import { useDirectory } from "../directories";
import { kindstack, MAIN } from "../e2e/operator";
import { useDatabase } from "../providers/postgres/database";

const database = useDatabase();
const directory = useDirectory();
const passphrase = { PULUMI_CONFIG_PASSPHRASE: "the-passphrase" };
const fileBackend = (name: string) => {
  fs.mkdirSync(path.join(directory, name), { recursive: true });
  return `file://${path.join(directory, name)}`;
};
const stacksOf = (folder: string) =>
  Object.keys((JSON.parse(fs.readFileSync(path.join(folder, "backup.json"), "utf8")) as { stacks: object }).stacks);

describe.each([
  ["file", "postgres", () => fileBackend("first"), () => database.backendUrl()],
  ["postgres", "file", () => `${database.backendUrl()}&table=other`, () => fileBackend("second")],
])("a backup of a %s:// backend", (from, to, source, target) => {
  const backup = path.join(directory, `of-${from}`);
  const environment = (url: string) => ({ ...passphrase, PULUMI_BACKEND_URL: url });
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await TestEngine.open(source());
    await engine.up("one", { a: "1", b: "2" });
    await engine.up("two", { c: "3" });
    return () => engine.close();
  });

  it("has every stack, readable by its owner alone, in the form that `pulumi stack import` takes", () => {
    expect(kindstack(["backup", backup], environment(source()))).toBe(`wrote 2 stacks to ${backup}\n`);
    expect(stacksOf(backup)).toEqual(["one", "two"]);
    const file = path.join(backup, "stack.one.json");
    expect(fs.statSync(file).mode & 0o777).toBe(0o600);
    const { version, deployment } = JSON.parse(fs.readFileSync(file, "utf8"));
    expect(version).toBeGreaterThanOrEqual(3);
    expect(deployment.resources.map(({ urn }: { urn: string }) => urn.split("::").at(-1)).sort()).toEqual(
      expect.arrayContaining(["a", "b"]),
    );
  });

  it("is not written over another one", () => {
    expect(() => kindstack(["backup", backup], environment(source()))).toThrow(/is not an empty directory/);
    expect(stacksOf(backup)).toEqual(["one", "two"]);
  });

  it(`is restored into a ${to}:// backend, where an update finds nothing to do`, async () => {
    expect(kindstack(["restore", backup], environment(target()))).toBe("restored 2 stacks\n");
    const restored = path.join(directory, `restored-${from}`);
    kindstack(["backup", restored], environment(target()));
    expect(stacksOf(restored)).toEqual(["one", "two"]);
    const resources = (folder: string) =>
      JSON.parse(fs.readFileSync(path.join(folder, "stack.one.json"), "utf8")).deployment.resources.map(
        ({ urn, id, outputs }: Record<string, unknown>) => ({ urn, id, outputs }),
      );
    expect(resources(restored)).toEqual(resources(backup));
  });

  it("replaces no stack that is there, unless it is told to", () => {
    expect(() => kindstack(["restore", backup], environment(target()))).toThrow(/2 of 2 stacks exist.*--overwrite/s);
    expect(kindstack(["restore", backup, "--overwrite"], environment(target()))).toBe("restored 2 stacks\n");
  });

  it("is refused as a whole when a file of it is missing, or is not what was written", () => {
    const damaged = path.join(directory, `damaged-${from}`);
    fs.cpSync(backup, damaged, { recursive: true });
    fs.appendFileSync(path.join(damaged, "stack.two.json"), " ");
    const empty = fileBackend(`empty-${from}`);
    expect(() => kindstack(["restore", damaged], environment(empty))).toThrow(/was changed after the backup/);
    fs.rmSync(path.join(damaged, "stack.two.json"));
    expect(() => kindstack(["restore", damaged], environment(empty))).toThrow(/lacks the file of the stack two/);
    expect(fs.existsSync(path.join(directory, `empty-${from}`, ".pulumi", "stacks"))).toBe(false);
  });
});

describe("a backup from before the passphrase was changed", () => {
  const backup = path.join(directory, "former");
  const declare = (value: string) => void new Thing("a", { key: "sealed/a", value: secret(value) });
  const restoreWith = (phrase: string, from: string, to: string) =>
    spawnSync(process.execPath, [MAIN, "restore", from], {
      encoding: "utf8",
      env: { ...process.env, PULUMI_BACKEND_URL: fileBackend(to), PULUMI_CONFIG_PASSPHRASE: phrase },
    });
  const openWith = (phrase: string, name: string) =>
    TestEngine.open(fileBackend(name), { protection: { passphrase: { value: phrase }, keyService: undefined } });
  /** Pulumi's CLI, in a folder with the project's name. */
  const pulumi = async (words: string, backend: string, phrase: string, input = "") => {
    const folder = path.join(directory, "project");
    fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(path.join(folder, "Pulumi.yaml"), "name: kindstack\nruntime: nodejs\n");
    const { status, stderr } = spawnSync(await resolveBinary("pulumi"), [...words.split(" "), "--non-interactive"], {
      cwd: folder,
      input,
      encoding: "utf8",
      env: {
        ...process.env,
        PULUMI_BACKEND_URL: fileBackend(backend),
        PULUMI_CONFIG_PASSPHRASE: phrase,
        PULUMI_HOME: path.join(directory, "home"),
        PULUMI_SKIP_UPDATE_CHECK: "true",
      },
    });
    expect(status, stderr).toBe(0);
  };
  beforeAll(async () => {
    const engine = await TestEngine.open(fileBackend("former-state"));
    await engine.engine.up("sealed", () => declare("canary"));
    await engine.up("plain", { a: "1" });
    await engine.close();
    kindstack(["backup", backup], { ...passphrase, PULUMI_BACKEND_URL: fileBackend("former-state") });
  });

  it("is restored without a word with the passphrase that it was made with", () => {
    const { status, stderr } = restoreWith("the-passphrase", backup, "same");
    expect(status).toBe(0);
    expect(stderr).not.toContain("warning");
  });

  it("names the stacks with secrets alone, and what it says makes them readable", async () => {
    const { status, stderr } = restoreWith("another", backup, "changed");
    expect(status).toBe(0);
    expect(stderr).toContain("the secrets of 1 stacks are encrypted with another passphrase: sealed. ");

    const command = /pulumi (stack change-secrets-provider passphrase --stack) <stack>/.exec(stderr)?.[1] ?? "";
    await pulumi(`${command} sealed`, "changed", "the-passphrase", "another\n");

    const engine = await openWith("another", "changed");
    const { failures } = await engine.engine.up("sealed", () => declare("changed"));
    await engine.close();
    expect(failures).toEqual([]);
  });

  it("goes on without the former passphrase, but for stacks with secrets, which `pulumi stack rm --force` gives up", async () => {
    restoreWith("new", backup, "lost");
    const engine = await openWith("new", "lost");
    expect((await engine.up("plain", { a: "2" })).failures).toEqual([]);
    await expect(engine.engine.up("sealed", () => declare("changed"))).rejects.toThrow("incorrect passphrase");

    await pulumi("stack rm --force --yes --stack sealed", "lost", "new");
    expect(await engine.engine.listStacks()).toEqual([{ name: "plain" }]);
    await engine.close();
  });
});
