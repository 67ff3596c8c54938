import { expect, it } from "vitest";
import { approvalsHold } from "./approvals";
import { Proposals } from "./proposals";

const proposals = new Proposals();

it.each([2, 3, 4, 5, 6, 7, 8, 9])(
  "nothing is applied that was not approved: seed %i",
  async (seed) => {
    expect(await approvalsHold(proposals, seed, 150)).toBeGreaterThan(0);
  },
  600_000,
);
