import fs from "node:fs";
import { describe, expect, it } from "vitest";
import { eventually } from "../../src/testing/eventually";
import { stackName } from "../../stacks/contract/object";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { podSet } from "../../stacks/kinds/podset/kind";
import { postgresWriter } from "../../stacks/kinds/postgres-writer/kind";
import { tenant } from "../../stacks/kinds/tenant/kind";
import { uniqueName } from "./manifests";
import { find, remove } from "./objects";
import { manifestOf, PULUMI_TIMEOUT_MS, uidsOf, usePlatformTeam } from "./platform-team";

const team = usePlatformTeam();
const { madeFor, write, rows } = team;

it("pulumi up in the own stacks of several objects runs in each the object whose stack it is, with the same files for all", {
  timeout: PULUMI_TIMEOUT_MS,
}, async () => {
  const name = uniqueName("own");
  const writer = manifestOf(postgresWriter, name, { table: "students", name: "alex", age: 1, country: "canada" });
  const cache = manifestOf(memcached, name, {});
  const manifests = write("own", writer, cache);
  const stacks = [stackName(postgresWriter, `default/${name}`), stackName(memcached, `default/${name}`)];
  for (const stack of stacks) {
    await team.project.init(stack);
    team.project.configure(stack, { manifests });
    const { exitCode, changes, output } = await team.project.up(stack);
    expect(exitCode, output).toBe(0);
    expect(changes).toEqual({ create: 1 });
  }
  expect(await rows()).toEqual([{ id: `default/${name}`, age: 1 }]);
  expect([...(await madeFor(memcached, cache)).keys()]).toEqual([`Deployment/${name}`]);
  for (const stack of stacks) expect((await team.project.destroy(stack)).changes).toEqual({ delete: 1 });
  expect(await rows()).toEqual([]);
  fs.rmSync(manifests);
});

describe("pulumi up of several objects, without an operator", () => {
  const stack = uniqueName("many");
  const names = {
    tenant: uniqueName("tenant"),
    pods: uniqueName("pods"),
    row: uniqueName("row"),
    mc: uniqueName("mc"),
  };
  const acme = (spec: object = {}) =>
    manifestOf(tenant, names.tenant, {
      adminEmail: "a@example.com",
      adminGroups: ["admins"],
      namespaces: [names.tenant],
      ...spec,
    });
  const pods = (replicas: number) => manifestOf(podSet, names.pods, { replicas });
  const writer = (age: number) =>
    manifestOf(postgresWriter, names.row, { table: "students", name: "alex", age, country: "canada" });
  const cache = manifestOf(memcached, names.mc, {});
  const bindings = { kind: "RoleBinding", apiVersion: "rbac.authorization.k8s.io/v1" };

  it("previews all of it and makes none of it", { timeout: PULUMI_TIMEOUT_MS }, async () => {
    write("workloads", pods(2), cache);
    write("rest", acme(), writer(23));
    await team.project.init(stack);
    team.project.configure(stack, { manifests: [team.folder] });

    const { exitCode, output } = await team.project.preview(stack);

    expect(exitCode, output).toBe(0);
    expect(output).toContain("+ 11 to create\n"); // the stack, 4 objects; 1 namespace, 1 binding, 2 Pods, 1 row, 1 Deployment
    expect(await rows()).toEqual([]);
    expect((await madeFor(tenant, acme())).size).toBe(0);
  });

  it("makes it", { timeout: PULUMI_TIMEOUT_MS }, async () => {
    const { exitCode, changes, output } = await team.project.up(stack);

    expect(exitCode, output).toBe(0);
    expect(changes).toEqual({ create: 10 });
    expect(await rows()).toEqual([{ id: `default/${names.row}`, age: 23 }]);
    expect([...(await madeFor(tenant, acme())).keys()].sort()).toEqual([
      `Namespace/${names.tenant}`,
      `RoleBinding/${names.tenant}-admin-rb`,
    ]);
    expect((await madeFor(podSet, pods(2))).size).toBe(2);
    expect([...(await madeFor(memcached, cache)).keys()]).toEqual([`Deployment/${names.mc}`]);
  });

  it("leaves nothing that the garbage collector would delete for lack of an owner", async () => {
    const made = [...(await madeFor(podSet, pods(2))).values(), ...(await madeFor(memcached, cache)).values()];

    expect(made).toHaveLength(3);
    for (const { metadata } of made) expect(metadata.ownerReferences).toBeUndefined();
  });

  it("does nothing the second time", { timeout: PULUMI_TIMEOUT_MS }, async () => {
    const before = uidsOf(await madeFor(podSet, pods(2)));

    expect((await team.project.up(stack)).changes).toEqual({});

    expect(uidsOf(await madeFor(podSet, pods(2)))).toEqual(before);
  });

  it("repairs after a refresh what others did", { timeout: PULUMI_TIMEOUT_MS }, async () => {
    await remove({ ...bindings, metadata: { name: `${names.tenant}-admin-rb`, namespace: names.tenant } });
    await team.database.query("UPDATE students SET age = 99");

    const refreshed = await team.project.refresh(stack);
    const { changes } = await team.project.up(stack);

    expect(refreshed.exitCode, refreshed.output).toBe(0);
    expect(changes).toEqual({ create: 1, update: 1 });
    expect((await madeFor(tenant, acme())).size).toBe(2);
    expect(await rows()).toMatchObject([{ age: 23 }]);
  });

  it("follows the files: changes, and objects that are not in them any more", {
    timeout: PULUMI_TIMEOUT_MS,
  }, async () => {
    write("workloads", pods(1));
    write("rest", acme({ adminEmail: "b@example.com" }), writer(24));

    const { exitCode, changes, output } = await team.project.up(stack);

    expect(exitCode, output).toBe(0);
    expect(changes).toEqual({ update: 2, delete: 3 }); // a Pod, the Memcached and its Deployment
    expect(await rows()).toMatchObject([{ age: 24 }]);
    expect((await madeFor(podSet, pods(1))).size).toBe(1);
  });

  it("says which object of which file is wrong, and does nothing", { timeout: PULUMI_TIMEOUT_MS }, async () => {
    write("rest", acme({ adminEmail: "c@example.com" }), writer(-1));

    const { exitCode, changes, output } = await team.project.up(stack);

    expect(exitCode).toBe(1);
    expect(changes).toEqual({});
    expect(output).toContain(`rest.yaml: PostgresWriter default/${names.row}: spec.age: -1 must be >= 0`);
  });

  it("destroys all of it", { timeout: PULUMI_TIMEOUT_MS }, async () => {
    const { exitCode, changes, output } = await team.project.destroy(stack);

    expect(exitCode, output).toBe(0);
    expect(changes).toEqual({ delete: 7 }); // 3 objects; 1 namespace, 1 binding, 1 Pod, 1 row
    expect(await rows()).toEqual([]);
    await eventually(async () => expect((await madeFor(podSet, pods(1))).size).toBe(0));
    expect(await find({ apiVersion: "v1", kind: "Namespace", metadata: { name: names.tenant } })).toBeUndefined();
  });
});
