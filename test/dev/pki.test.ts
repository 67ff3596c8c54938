import { X509Certificate } from "node:crypto";
import fs from "node:fs/promises";
import path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { type Credential, preparePki } from "../../src/dev/pki";
import { testDirectory } from "../directories";

let directory: string;

beforeEach(() => {
  directory = testDirectory();
});

const parse = ({ certificate }: Credential) => new X509Certificate(certificate);

describe("the certificates of a cluster", () => {
  it("name the addresses of the API server and the users of its clients", async () => {
    const pki = await preparePki(directory);

    const server = parse(pki.apiServer);
    for (const address of ["127.0.0.1", "10.0.0.1"]) expect(server.checkIP(address)).toBe(address);
    for (const name of ["localhost", "kubernetes.default.svc"]) expect(server.checkHost(name)).toBe(name);
    expect(parse(pki.admin).subject.split("\n")).toEqual(["CN=kubernetes-admin", "O=system:masters"]);
    expect(parse(pki.scheduler).subject).toBe("CN=system:kube-scheduler");
  });

  it("are signed by the cluster's CA, those of etcd by a CA of its own", async () => {
    const pki = await preparePki(directory);

    const [ca, etcdCa] = [parse(pki.ca).publicKey, parse(pki.etcdCa).publicKey];
    for (const credential of [pki.apiServer, pki.serving, pki.admin, pki.kwok]) {
      expect(parse(credential).verify(ca)).toBe(true);
    }
    for (const credential of [pki.etcd, pki.apiServerEtcdClient]) {
      expect(parse(credential).verify(etcdCa)).toBe(true);
      expect(parse(credential).verify(ca)).toBe(false);
    }
  });

  it("are issued again each time by the same CAs", async () => {
    const first = await preparePki(directory);
    const second = await preparePki(directory);

    expect(second.ca).toEqual(first.ca);
    expect(second.etcdCa).toEqual(first.etcdCa);
    expect(parse(second.admin).serialNumber).not.toBe(parse(first.admin).serialNumber);
  });

  it("have keys that only their owner can read", async () => {
    await preparePki(directory);

    const keys = (await fs.readdir(directory)).filter((name) => name.endsWith(".key"));
    const modes = await Promise.all(keys.map(async (name) => (await fs.stat(path.join(directory, name))).mode & 0o777));
    expect(keys).toContain("service-account.key");
    expect(new Set(modes)).toEqual(new Set([0o600]));
  });
});
