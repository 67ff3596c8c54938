import { expect, it } from "vitest";
import { planName } from "../../../stacks/contract/plan";

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

it.each([148, 149, 150])("names a plan as Kubernetes allows, of an object with a dot after %d characters", (length) => {
  const name = planName({ singular: "tenant" }, { name: `${"a".repeat(length)}.${"b".repeat(50)}`, uid: "1" });
  expect(name).toMatch(SUBDOMAIN);
  expect(name).toContain(`tenant-${"a".repeat(148)}`);
});
