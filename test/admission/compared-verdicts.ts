import fc from "fast-check";
import { expect } from "vitest";
import { isApiError, type Manifest } from "../../providers/kubernetes/client";
import { TENANT_LABEL } from "../../stacks/kinds/capsule-tenant/labels";
import { TENANTS, tenantObjects } from "./tenant-objects";
import { isAllowed } from "./tenant-rules";
import { create, namespaceOf, type TestAdmission, uniqueName } from "./test-admission";

const AT_ONCE = 20;

/**
 * Sends random objects to the API server, as dry runs, and compares its verdicts with the second reading.
 *
 * @returns how many it allowed and refused, and how many were no valid objects
 */
export async function compareVerdicts(admission: TestAdmission, objects: number, seed: number) {
  const names = TENANTS.map(() => uniqueName("fuzz"));
  const priorityClass = uniqueName("fuzz");
  await admission.priorityClass(priorityClass);
  for (const [index, name] of names.entries()) {
    await admission.tenant(name, { owner: { kind: "User", name }, ...TENANTS[index] });
    await admission.create(namespaceOf(name, { labels: { [TENANT_LABEL]: name } }));
    await admission.untilEnforced(name);
  }
  const counts = { allowed: 0, refused: 0, invalid: 0 };
  const differs = async ({ tenant, manifest }: { tenant: number; manifest: Manifest }) => {
    const sent = { ...manifest, metadata: { ...manifest.metadata, namespace: names[tenant] as string } };
    const message = await create(admission.client, sent, true).then(() => "", refusalOf);
    const verdict = message === "" ? "allowed" : message === undefined ? "invalid" : "refused";
    counts[verdict]++;
    const expected = isAllowed({ owner: { kind: "User", name: "a" }, ...TENANTS[tenant] }, manifest);
    if (message === undefined || expected === (message === "")) return [];
    return [`tenant ${tenant}, ${JSON.stringify(manifest)}: ${message || "allowed"}`];
  };
  const batch = fc.array(tenantObjects(["", priorityClass]), { minLength: AT_ONCE, maxLength: AT_ONCE });
  await fc.assert(
    fc.asyncProperty(batch, async (some) => {
      expect((await Promise.all(some.map(differs))).flat()).toEqual([]);
    }),
    { numRuns: objects / AT_ONCE, seed, endOnFailure: false },
  );
  return counts;
}

/** @returns why a policy refuses an object; `undefined` for what is no valid object */
function refusalOf(error: unknown): string | undefined {
  if (isApiError(error, 403) && `${error}`.includes("ValidatingAdmissionPolicy")) return `${error}`;
  if (isApiError(error, 400, 422)) return undefined;
  throw error;
}
