import { KubeConfig } from "@kubernetes/client-node";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ApiServer } from "../../../providers/kubernetes/api-server";
import { Login } from "../../../providers/kubernetes/login";

let config: KubeConfig;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  config = new KubeConfig();
  config.loadFromClusterAndUser({ name: "c", server: "http://127.0.0.1:1", skipTLSVerify: true }, { name: "u" });
});
afterEach(() => void vi.useRealTimers());

it("credentials that take long, as a plugin's may, are read once for all who wait", async () => {
  const { promise: answer, resolve } = Promise.withResolvers<void>();
  const read = vi.spyOn(config, "applyToHTTPSOptions").mockReturnValue(answer);
  const login = new Login(config);
  const asked = [login.access()];
  for (let second = 0; second < 5; second++) {
    vi.advanceTimersByTime(1_000);
    asked.push(login.access());
  }
  expect(read).toHaveBeenCalledTimes(1);

  resolve();
  await Promise.all(asked);
  await login.access();
  expect(read).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(1_000);
  await login.access();
  expect(read).toHaveBeenCalledTimes(2);
  await login.close();
});

it("credentials that could not be read are read again at the next request", async () => {
  const read = vi.spyOn(config, "applyToHTTPSOptions").mockRejectedValueOnce(new Error("no network"));
  const login = new Login(config);
  await expect(login.access()).rejects.toThrow("no network");
  await expect(login.access()).resolves.toMatchObject({ headers: {} });
  expect(read).toHaveBeenCalledTimes(2);
  await login.close();
});

it("credentials of a plugin that hangs are given up after a while, and read again", async () => {
  const read = vi.spyOn(config, "applyToHTTPSOptions").mockReturnValueOnce(new Promise(() => {}));
  const login = new Login(config);
  const asked = expect(login.access()).rejects.toThrow("within 30 s");
  vi.advanceTimersByTime(30_000);
  await asked;
  await expect(login.access()).resolves.toMatchObject({ headers: {} });
  expect(read).toHaveBeenCalledTimes(2);
  await login.close();
});

it("credentials that cannot be read may be read later", async () => {
  vi.spyOn(config, "applyToHTTPSOptions").mockRejectedValue(new Error("plugin: exit code 1"));
  const server = new ApiServer(config);
  const message = "the credentials for the API server at http://127.0.0.1:1 cannot be read: plugin: exit code 1";
  await expect(server.json("GET", "/version")).rejects.toMatchObject({ errorClass: "retryable", message });
  await server.close();
});
