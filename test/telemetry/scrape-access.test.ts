import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "../../providers/kubernetes/client";
import { scrapeAccess } from "../../src/telemetry/scrape-access";

interface Review {
  spec: { token?: string; user?: string; groups?: string[]; nonResourceAttributes?: object };
}

/** An API server's two review endpoints: what tokens it knows, and whom it lets read the metrics. */
function reviewer(users: Record<string, string>, allowed: readonly string[]) {
  const asked: Review[] = [];
  const state = { asked, unreachable: false, gate: Promise.resolve() };
  const json = async (_method: string, path: string, { body }: { body?: unknown } = {}) => {
    const review = body as Review;
    asked.push(review);
    await state.gate;
    if (state.unreachable) throw new ApiError(0, "Unreachable", "no answer");
    if (path.endsWith("/subjectaccessreviews"))
      return { status: { allowed: allowed.includes(review.spec.user ?? "") } };
    const username = users[review.spec.token ?? ""];
    if (username === undefined) return { status: { error: "unknown token" } };
    return { status: { authenticated: true, user: { username, uid: "1", groups: ["system:authenticated"] } } };
  };
  return { state, client: { json: json as never } };
}

function access(users: Record<string, string> = { good: "prometheus", poor: "mallory" }, allowed = ["prometheus"]) {
  const { state, client } = reviewer(users, allowed);
  const warnings: unknown[] = [];
  const logger = { warn: (...line: unknown[]) => void warnings.push(line) };
  return {
    state,
    warnings,
    may: scrapeAccess(client, logger).bind(undefined, "/metrics"),
  };
}

/** Sets the clock of the cache. @param ms not 0, which lru-cache takes for no time at all */
function setClock(ms: number): void {
  vi.spyOn(performance, "now").mockReturnValue(ms);
  vi.advanceTimersByTime(1); // for so long it believes in what it read before
}

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const ADDRESS = "10.0.0.1";

describe("who may read the metrics", () => {
  it("is a user whom the cluster lets get /metrics", async () => {
    const { may, state } = access();
    expect(await may("Bearer good", ADDRESS)).toBe("allowed");
    expect(state.asked[1]?.spec).toEqual({
      user: "prometheus",
      uid: "1",
      groups: ["system:authenticated"],
      extra: {},
      nonResourceAttributes: { path: "/metrics", verb: "get" },
    });
  });

  it("is not a user whom the cluster does not let", async () => {
    expect(await access().may("bearer poor", ADDRESS)).toBe("forbidden");
  });

  it.each([
    undefined,
    "",
    "Bearer",
    "Bearer ",
    "Basic Z29vZA==",
    "Bearer good good",
    "Bearer good\u0000",
    `Bearer ${"x".repeat(17_000)}`,
  ])("is not asked of anyone for %j", async (header) => {
    const { may, state } = access();
    expect(await may(header, ADDRESS)).toBe("unauthenticated");
    expect(state.asked).toEqual([]);
  });

  it("is not an unknown user", async () => {
    expect(await access().may("Bearer forged", ADDRESS)).toBe("unauthenticated");
  });

  it("is asked once a minute, and sooner again when it was refused; whose a token is, every ten seconds", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    const { may, state } = access();
    for (const ms of [1, 1_000, 59_000]) {
      setClock(ms);
      expect(await may("Bearer good", ADDRESS)).toBe("allowed");
    }
    expect(state.asked.map(({ spec }) => spec.token ?? "right")).toEqual(["good", "right", "good"]);
    setClock(61_000);
    await may("Bearer good", ADDRESS);
    expect(state.asked).toHaveLength(4);

    await may("Bearer poor", ADDRESS);
    setClock(72_000);
    await may("Bearer poor", ADDRESS);
    expect(state.asked).toHaveLength(8);
  });

  it("is asked once for requests that come together", async () => {
    const { may, state } = access();
    await Promise.all(Array.from({ length: 50 }, () => may("Bearer good", ADDRESS)));
    expect(state.asked).toHaveLength(2);
  });

  it("is not known while the API server does not answer, and no one is let in", async () => {
    const { may, state, warnings } = access();
    state.unreachable = true;
    expect(await may("Bearer good", ADDRESS)).toBe("unknown");
    expect(warnings).toHaveLength(1);
    state.unreachable = false;
    expect(await may("Bearer good", ADDRESS)).toBe("allowed");
  });

  it("asks about eight tokens at a time, and refuses no user at the address of those who invent them", async () => {
    const { may, state } = access();
    let open = () => {};
    state.gate = new Promise((resolve) => {
      open = resolve;
    });
    const all = Array.from({ length: 500 }, (_, index) => may(`Bearer made-up-${index}`, ADDRESS));
    const good = [may("Bearer good", ADDRESS), may("Bearer good", "10.0.0.2")];
    expect(state.asked.length).toBeLessThanOrEqual(8);
    open();
    const verdicts = await Promise.all(all);
    expect(new Set(verdicts)).toEqual(new Set(["unauthenticated"]));
    expect(await Promise.all(good)).toEqual(["allowed", "allowed"]);
  });

  it("holds no token in a warning", async () => {
    const { may, state, warnings } = access();
    state.unreachable = true;
    await may("Bearer canary-token", ADDRESS);
    expect(warnings).toHaveLength(1);
    expect(JSON.stringify(warnings)).not.toContain("canary-token");
  });
});
