import { afterEach, describe, expect, it, vi } from "vitest";
import { environmentProxy } from "../../providers/environment-proxy";

const PROXY = { HTTPS_PROXY: "http://proxy:3128" };
const NAMES = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"].flatMap((name) => [name, name.toLowerCase()]);

afterEach(() => void vi.unstubAllEnvs());

function proxyOf(server: string, environment: NodeJS.ProcessEnv): string | undefined {
  for (const name of NAMES) vi.stubEnv(name, environment[name]);
  return environmentProxy(new URL(server));
}

describe("the proxy of the environment", () => {
  it.each([
    [{}, undefined],
    [PROXY, "http://proxy:3128"],
    [{ https_proxy: "proxy:1" }, "http://proxy:1"],
    [{ HTTPS_PROXY: "https://a", https_proxy: "https://b" }, "https://a"],
    [{ HTTP_PROXY: "http://proxy" }, undefined],
    [{ HTTPS_PROXY: "", https_proxy: "" }, undefined],
  ])("of %j is %s", (environment, expected) => {
    expect(proxyOf("https://api.example.com:6443", environment)).toBe(expected);
  });

  it("for a server without TLS is another", () => {
    expect(proxyOf("http://api.example.com", { HTTP_PROXY: "http://a", HTTPS_PROXY: "http://b" })).toBe("http://a");
  });

  it("must be one that is spoken here", () => {
    expect(() => proxyOf("https://a.example.com", { HTTPS_PROXY: "socks5://a" })).toThrow(
      "HTTPS_PROXY must begin with http:// or https://",
    );
  });

  // As golang.org/x/net/http/httpproxy reads it.
  it.each([
    ["https://localhost:1", "", true],
    ["https://127.9.9.9", "", true],
    ["https://[::1]:6443", "", true],
    ["https://api.example.com", "*", true],
    ["https://api.example.com", "example.com", true],
    ["https://api.example.com", ".example.com", true],
    ["https://example.com", ".example.com", false],
    ["https://example.com", "*.example.com", false],
    ["https://api.example.com", "*.example.com", true],
    ["https://notexample.com", "example.com", false],
    ["https://API.example.com", "other, Api.Example.Com", true],
    ["https://api.example.com:6443", "api.example.com:6443", true],
    ["https://api.example.com", "api.example.com:443", true],
    ["https://api.example.com", "api.example.com:6443", false],
    ["https://10.1.2.3:6443", "10.0.0.0/8", true],
    ["https://11.1.2.3", "10.0.0.0/8", false],
    ["https://10.1.2.3", "10.1.2.3:443", true],
    ["https://10.1.2.3", "10.1.2", false],
    ["https://[fd00::5]:6443", "fd00::/8", true],
    ["https://[fd00::5]:6443", "[fd00::5]:6443", true],
    ["https://[fd00::5]", "fd00:0::5", true],
    ["https://10.1.2.3", "fd00::/8", false],
  ])("is not for %s when NO_PROXY is %j: %s", (server, noProxy, isExempt) => {
    expect(proxyOf(server, { ...PROXY, NO_PROXY: noProxy }) === undefined).toBe(isExempt);
  });
});
