import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { TerminalError } from "../../../providers/errors";
import { protectedNamespaces, refuseProtectedNamespace } from "../../../providers/kubernetes/protected-namespaces";

const ALWAYS = ["kube-*", "default", "kindstack-system"];

describe("the protected namespaces", () => {
  it("are the cluster's and the operator's where nothing is configured", () => {
    expect(protectedNamespaces({})).toEqual(ALWAYS);
  });

  it("are more where more are named, never fewer", () => {
    const environment = { KINDSTACK_PROTECTED_NAMESPACES: " cert-manager, ingress-*,, default" };
    expect(protectedNamespaces(environment)).toEqual([...ALWAYS, "cert-manager", "ingress-*"]);
  });

  it("hold in a Pod the one that the operator runs in, whatever it is called", () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-namespace-"));
    try {
      const file = path.join(folder, "namespace");
      fs.writeFileSync(file, "ops\n");
      expect(protectedNamespaces({ KUBERNETES_SERVICE_HOST: "10.0.0.1" }, file)).toEqual([...ALWAYS, "ops"]);
      expect(protectedNamespaces({ KUBERNETES_SERVICE_HOST: "10.0.0.1" }, `${file}-missing`)).toEqual(ALWAYS);
      expect(protectedNamespaces({}, file)).toEqual(ALWAYS);
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  });

  it("are refused with the field, the name and what is allowed", () => {
    const refusing = () => refuseProtectedNamespace("kube-public", "spec.namespaces.3", ["kube-*", "default"]);
    expect(refusing).toThrow(TerminalError);
    expect(refusing).toThrow(
      'spec.namespaces.3: "kube-public" is protected and cannot belong to a tenant; allowed: all except kube-*, default',
    );
  });

  it.each(["kubernetes", "defaults", "my-default", "team"])("do not hold %s", (name) => {
    expect(() => refuseProtectedNamespace(name, "spec", protectedNamespaces({}))).not.toThrow();
  });
});
