import { describe, expect, it } from "vitest";
import { FairLimit } from "../../src/http/fair-limit";

describe("a fair limit", () => {
  it("takes turns between clients, however much one of them asks for", async () => {
    const limit = new FairLimit(1);
    const order: string[] = [];
    const ask = (client: string) => limit.run(client, async () => void order.push(client));

    const many = Array.from({ length: 50 }, () => ask("many"));
    await Promise.all([...many, ask("one")]);

    expect(order).toHaveLength(51);
    expect(order.indexOf("one")).toBeLessThanOrEqual(2);
  });

  it("runs so many at the same time, also after failures", async () => {
    const limit = new FairLimit(2);
    let running = 0;
    let most = 0;
    const work = async () => {
      most = Math.max(most, ++running);
      await Promise.resolve();
      running--;
      throw new Error("no");
    };

    const ends = await Promise.allSettled(Array.from({ length: 20 }, (_, i) => limit.run(`client-${i % 3}`, work)));

    expect(ends.every(({ status }) => status === "rejected")).toBe(true);
    expect(most).toBe(2);
    expect(await limit.run("a", async () => "done")).toBe("done");
  });
});
