import fs from "node:fs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { TerminalError } from "../../../providers/errors";
import { protectedNamespaces, refuseProtectedNamespace } from "../../../providers/kubernetes/protected-namespaces";

const ALWAYS = ["kube-*", "default", "kindstack-system"];

beforeEach(() => {
  vi.stubEnv("KINDSTACK_PROTECTED_NAMESPACES", undefined);
  vi.stubEnv("KUBERNETES_SERVICE_HOST", undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

describe("the protected namespaces", () => {
  it("are the cluster's and the operator's where nothing is configured", () => {
    expect(protectedNamespaces()).toEqual(ALWAYS);
  });

  it("are more where more are named, never fewer", () => {
    vi.stubEnv("KINDSTACK_PROTECTED_NAMESPACES", " cert-manager, ingress-*,, default");
    expect(protectedNamespaces()).toEqual([...ALWAYS, "cert-manager", "ingress-*"]);
  });

  it.each(["^.*[-.]system$", ".*-system", "-foo", "bar-", "Team", "a b", "a/b", "a".repeat(64)])(
    "are not what matches no name: %s",
    (pattern) => {
      vi.stubEnv("KINDSTACK_PROTECTED_NAMESPACES", `cert-manager,${pattern}`);
      expect(() => protectedNamespaces()).toThrow(TerminalError);
      expect(() => protectedNamespaces()).toThrow(
        `KINDSTACK_PROTECTED_NAMESPACES: "${pattern}" matches no namespace's name`,
      );
    },
  );

  it.each(["*", "*-system", "a*", "0", "a".repeat(63)])("are what matches some: %s", (pattern) => {
    vi.stubEnv("KINDSTACK_PROTECTED_NAMESPACES", pattern);
    expect(protectedNamespaces()).toEqual([...ALWAYS, pattern]);
  });

  it("hold in a Pod the one that the operator runs in, whatever it is called", () => {
    const file = vi.spyOn(fs, "readFileSync").mockReturnValue("ops\n");
    expect(protectedNamespaces()).toEqual(ALWAYS);
    vi.stubEnv("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    expect(protectedNamespaces()).toEqual([...ALWAYS, "ops"]);
    expect(file).toHaveBeenCalledWith("/var/run/secrets/kubernetes.io/serviceaccount/namespace", "utf8");
    file.mockImplementation(() => {
      throw new Error("no such file");
    });
    expect(protectedNamespaces()).toEqual(ALWAYS);
  });

  it("are refused with the field, the name and what is allowed", () => {
    const refusing = () => refuseProtectedNamespace("kube-public", "spec.namespaces.3");
    expect(refusing).toThrow(TerminalError);
    expect(refusing).toThrow(
      'spec.namespaces.3: "kube-public" is protected and cannot belong to a tenant; allowed: all except kube-*, default, kindstack-system',
    );
  });

  it.each(["kubernetes", "defaults", "my-default", "team"])("do not hold %s", (name) => {
    expect(() => refuseProtectedNamespace(name, "spec")).not.toThrow();
  });
});
