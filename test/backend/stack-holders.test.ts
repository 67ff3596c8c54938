import { describe, expect, it } from "vitest";
import { ApiError } from "../../providers/kubernetes/client";
import { listHolders } from "../../src/backend/stack-holders";
import { kindName } from "../../stacks/contract/kind";
import { stackName } from "../../stacks/contract/object";
import { memcached } from "../../stacks/kinds/memcached/kind";
import { tenant } from "../../stacks/kinds/tenant/kind";
import { lookupOf } from "../providers/kubernetes/lookup-of";

const STACK = stackName(memcached, "default/cache");

/** A cluster with a Memcached in which tenants are not served. */
const clusterWith = (status: object, definitions: string[]) =>
  ({
    async *pages({ kind }: { kind: string }) {
      if (kind !== memcached.kind) throw new ApiError(404, "NotFound", "not served");
      yield {
        items: [{ metadata: { name: "cache", namespace: "default", uid: "uid" }, status }],
        resourceVersion: "1",
      };
    },
    get: async (_type: unknown, name: string) => lookupOf(definitions.includes(name) ? ({} as never) : undefined),
  }) as never;

describe("the objects that may have stacks", () => {
  it.each([
    ["its own", { stack: { name: STACK, program: "" } }, true],
    ["none", {}, false],
    ["that of an object that it was copied from", { stack: { name: "other", program: "" } }, false],
  ])("an object whose status names %s", async (_, status, isRecorded) => {
    expect(await listHolders(clusterWith(status, []), [memcached])).toEqual([{ stack: STACK, uid: "uid", isRecorded }]);
  });

  it("of a kind without a CRD are none, and of one that is not served are unknown", async () => {
    expect(await listHolders(clusterWith({}, []), [tenant, memcached])).toHaveLength(1);
    const unserved = listHolders(clusterWith({}, [kindName(tenant)]), [tenant, memcached]);
    await expect(unserved).rejects.toMatchObject({ reason: "NotServed" });
  });
});
