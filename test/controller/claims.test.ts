import { beforeEach, describe, expect, it } from "vitest";
import { Claims } from "../../src/controller/claims";

const unheld = () => undefined;
let woken: string[];
let gone: Set<string>;
let claims: Claims<string>;

beforeEach(() => {
  woken = [];
  gone = new Set();
  claims = new Claims(
    (queueKey) => woken.push(queueKey),
    (uid) => !gone.has(uid),
  );
});

describe("take", () => {
  it("gives what no one holds", () => {
    expect(claims.take("acme", ["a", "b"], "queue/acme", unheld)).toBeUndefined();
  });

  it("gives the same holder the same again", () => {
    claims.take("acme", ["a"], "queue/acme", unheld);
    expect(claims.take("acme", ["a"], "queue/acme", () => "acme")).toBeUndefined();
  });

  it("refuses what another took a moment ago, though the live object does not show it yet", () => {
    claims.take("acme", ["a"], "queue/acme", unheld);
    expect(claims.take("globex", ["a"], "queue/globex", unheld)).toEqual({ id: "a", holder: "acme" });
  });

  it("refuses what the live object says another holds", () => {
    expect(claims.take("globex", ["a"], "queue/globex", () => "acme")).toEqual({ id: "a", holder: "acme" });
  });

  it("gives what a deleted object took, even after its deletion was reported", () => {
    gone.add("acme");
    claims.retain("acme", []);
    claims.take("acme", ["a"], "queue/acme", unheld);
    expect(claims.take("globex", ["a"], "queue/globex", unheld)).toBeUndefined();
    expect(claims.take("initech", ["a"], "queue/initech", unheld)).toEqual({ id: "a", holder: "globex" });
  });

  it("gives what a deleted object holds according to the live object", () => {
    gone.add("acme");
    expect(claims.take("globex", ["a"], "queue/globex", () => "acme")).toBeUndefined();
  });

  it("refuses what the live object says another holds, though who took it last is gone", () => {
    gone.add("acme");
    claims.take("acme", ["a"], "queue/acme", unheld);
    expect(claims.take("globex", ["a"], "queue/globex", () => "initech")).toEqual({ id: "a", holder: "initech" });
  });

  it("takes nothing when one of several is refused", () => {
    claims.take("acme", ["b"], "queue/acme", unheld);
    claims.take("globex", ["a", "b"], "queue/globex", unheld);
    expect(claims.take("initech", ["a"], "queue/initech", unheld)).toBeUndefined();
  });
});

describe("who was refused", () => {
  beforeEach(() => {
    claims.take("acme", ["a", "b"], "queue/acme", unheld);
    claims.take("globex", ["a"], "queue/globex", unheld);
  });

  it("is woken when the holder no longer wants it, and may then have it", () => {
    claims.retain("acme", ["b"]);
    expect(woken).toEqual(["queue/globex"]);
    expect(claims.take("globex", ["a"], "queue/globex", unheld)).toBeUndefined();
  });

  it("is woken when the holder is destroyed", () => {
    claims.retain("acme", []);
    expect(woken).toEqual(["queue/globex"]);
  });

  it("is woken when the live object is released", () => {
    claims.released("a");
    expect(woken).toEqual(["queue/globex"]);
  });

  it("is woken once however often it asked", () => {
    claims.take("globex", ["a"], "queue/globex", unheld);
    claims.retain("acme", []);
    claims.retain("acme", []);
    expect(woken).toEqual(["queue/globex"]);
  });

  it("is woken also when it was refused elsewhere", () => {
    claims.await("c", "queue/initech");
    claims.released("c");
    expect(woken).toEqual(["queue/initech"]);
  });

  it("is not woken any more when it is gone", () => {
    claims.forget("globex", "queue/globex");
    claims.retain("acme", []);
    expect(woken).toEqual([]);
  });

  it("is not woken while the holder keeps it", () => {
    claims.retain("acme", ["a", "b"]);
    expect(woken).toEqual([]);
  });

  it("is not woken by others releasing theirs", () => {
    claims.take("initech", ["c"], "queue/initech", unheld);
    claims.retain("initech", []);
    expect(woken).toEqual([]);
  });
});
