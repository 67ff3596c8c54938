import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { stringify } from "yaml";
import { registeredBy } from "../../../../src/testing/registered";
import { programDigest } from "../../../../stacks/contract/digest";
import { memcached } from "../../../../stacks/kinds/memcached/kind";
import { memcachedProgram } from "../../../../stacks/kinds/memcached/program";
import { acme } from "../../../objects";

beforeEach(() => void vi.stubEnv("MEMCACHED_IMAGE", ""));
afterEach(() => void vi.unstubAllEnvs());

const object = {
  apiVersion: "cache.example.com/v1alpha1",
  kind: "Memcached",
  metadata: { name: "cache", namespace: "default", uid: "uid", resourceVersion: "1", generation: 1 },
  spec: { size: 2, containerPort: 11212 },
};
const register = () => registeredBy(memcachedProgram, object, { owner: acme });

describe("the program of a Memcached", () => {
  it("makes one Deployment, as the operator that it is from makes it", async () => {
    const registered = await register();

    expect(registered.map(({ name, inputs: { owner } }) => ({ name, owner }))).toEqual([
      { name: "deployment/cache", owner: acme },
    ]);
    await expect(stringify(registered[0]?.inputs.manifest)).toMatchFileSnapshot("deployment.yaml");
  });

  it("takes the image that the operator's environment names, and is another program then", async () => {
    const before = programDigest(memcached);
    vi.stubEnv("MEMCACHED_IMAGE", "registry.example.com/memcached:2");
    const [deployment] = await register();
    expect(deployment?.inputs.manifest).toMatchObject({
      spec: { template: { spec: { containers: [{ image: "registry.example.com/memcached:2" }] } } },
    });
    expect(programDigest(memcached)).not.toBe(before);
  });
});
