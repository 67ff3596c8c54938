import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../src/testing/eventually";
import { controlPlane } from "../control-plane";
import { testDirectory, useDirectory } from "../directories";
import { mountedBundle } from "../e2e/ca-bundle";
import { conditionOf, removeUntilGone, untilGone, untilReady } from "../e2e/conditions";
import { namespace, tenant, uniqueName } from "../e2e/manifests";
import { apply, edit, find, get, remove } from "../e2e/objects";
import { kindstack, TestOperator } from "../e2e/operator";
import { TestAuthority } from "../tls/test-authority";
import { ObjectStore, SCHEMES } from "./object-store";

const TOOLS_TIMEOUT_MS = 600_000;

describe.each(SCHEMES)("an operator whose state is at %s://", (scheme) => {
  const store = new ObjectStore(scheme);
  const operator = new TestOperator();
  const directory = useDirectory();
  const backup = path.join(directory, "backup");
  const [dev, test] = [uniqueName("dev"), uniqueName("test")];
  const [acme, globex] = [uniqueName("acme"), uniqueName("globex")];
  const [first, second] = [tenant(acme, { namespaces: [dev] }), tenant(globex, { namespaces: [] })];
  const run = (bucket: string, ...words: string[]) =>
    kindstack(words, { ...controlPlane().env, ...store.environment(bucket) });
  const uid = async () => (await get(namespace(dev))).metadata.uid;
  let uidBefore: string | undefined;

  beforeAll(() => store.open(["state", "restored"]), TOOLS_TIMEOUT_MS);
  afterAll(async () => {
    await operator.dispose();
    await store.close();
  });

  it("creates resources, and shows what it did", async () => {
    await operator.start({ env: store.environment("state") });
    await Promise.all([first, second].map(apply));
    await Promise.all([first, second].map(untilReady));
    uidBefore = await uid();

    expect(JSON.parse(run("state", "history", "tenant.multitenancy", acme, "-o", "json"))).toMatchObject([
      { result: "succeeded" },
    ]);
    expect(JSON.parse(run("state", "outputs", "tenant.multitenancy", acme, "-o", "json"))).toContainEqual(
      expect.objectContaining({ type: "Namespace", name: expect.stringContaining(dev) }),
    );
  });

  it("keeps what it needs in a backup that is made while it runs", () => {
    expect(run("state", "backup", backup)).toBe(`wrote 2 stacks to ${backup}\n`);
    const list = JSON.parse(fs.readFileSync(path.join(backup, "backup.json"), "utf8"));
    expect(list).toMatchObject({ backend: scheme });
    expect(() => run("state", "restore", backup)).toThrow(/2 of 2 stacks exist/);
  });

  it("continues with the same resources from a restored state when its own is lost", async () => {
    await operator.stop();
    expect(run("restored", "restore", backup)).toBe("restored 2 stacks\n");
    await operator.start({ env: store.environment("restored") });

    await edit(first, { spec: { namespaces: [dev, test] } });
    await untilReady(first);
    expect(await find(namespace(test))).toHaveProperty("metadata.uid");
    expect(await uid()).toBe(uidBefore);
    expect(JSON.parse(run("restored", "history", "tenant.multitenancy", acme, "-o", "json"))[0]).toMatchObject({
      resourceChanges: { create: expect.any(Number), same: expect.any(Number) },
    });
  });

  it("destroys them, and leaves no stack behind", async () => {
    await Promise.all([first, second].map(remove));
    await Promise.all([namespace(dev), first, second].map(untilGone)); // the objects go after their stacks

    const empty = path.join(directory, "empty");
    expect(run("restored", "backup", empty)).toBe(`wrote 0 stacks to ${empty}\n`);
  });
});

it(
  "reaches a bucket whose server has a certificate of a private CA with the key caBundle, and names it without",
  async () => {
    const directory = testDirectory();
    const authority = await TestAuthority.create();
    const store = new ObjectStore("s3", await authority.server());
    let operator: TestOperator | undefined;
    const object = tenant(uniqueName("ca"), { namespaces: [] });
    const untrusted = /certificate.*: the key caBundle of the installation/;
    try {
      const bundle = await mountedBundle(authority.own.certificate, path.join(directory, "ca"));
      await store.open(["state"]);
      const environment = store.environment("state");
      const history = (env: Record<string, string>) =>
        kindstack(["history", "tenant.multitenancy", object.metadata.name ?? ""], { ...controlPlane().env, ...env });

      operator = new TestOperator({ env: environment });
      await operator.start();
      await apply(object);
      await eventually(async () => {
        expect(conditionOf(await get(object), "Synced").message).toMatch(untrusted);
      });
      expect(() => history(environment)).toThrow(untrusted);

      await operator.restart({ env: bundle });
      await untilReady(object);
      expect(history({ ...environment, ...bundle })).toContain("succeeded");
      await removeUntilGone(object);
    } finally {
      await operator?.dispose();
      await store.close();
    }
  },
  TOOLS_TIMEOUT_MS,
);
