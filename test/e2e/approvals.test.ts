import { expect, it } from "vitest";
import { approvalsHold } from "./approvals";
import { Proposals } from "./proposals";

const proposals = new Proposals();

it("nothing is applied that was not approved, whatever happens in which order", async () => {
  expect(await approvalsHold(proposals, 1, 40)).toBeGreaterThan(0);
});
