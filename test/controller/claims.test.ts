import { beforeEach, describe, expect, it } from "vitest";
import { Claims } from "../../src/controller/claims";
import { type ObjectItem, objectItem } from "../../src/controller/object-item";
import { tenant } from "../../stacks/kinds/tenant/kind";

const unheld = () => undefined;
const acme = objectItem(tenant, { name: "acme" });
const globex = objectItem(tenant, { name: "globex" });
const initech = objectItem(tenant, { name: "initech" });
let woken: ObjectItem[];
let gone: Set<string>;
let claims: Claims;

beforeEach(() => {
  woken = [];
  gone = new Set();
  claims = new Claims(
    (item) => woken.push(item),
    (uid) => !gone.has(uid),
  );
});

describe("take", () => {
  it("gives the same holder the same again", () => {
    claims.take("acme", ["a"], acme, unheld);
    expect(claims.take("acme", ["a"], acme, () => "acme")).toBeUndefined();
  });

  it("refuses what another took a moment ago, though the live object does not show it yet", () => {
    claims.take("acme", ["a"], acme, unheld);
    expect(claims.take("globex", ["a"], globex, unheld)).toEqual({ id: "a", holder: "acme" });
  });

  it("refuses what the live object says another holds", () => {
    expect(claims.take("globex", ["a"], globex, () => "acme")).toEqual({ id: "a", holder: "acme" });
  });

  it("gives what a deleted object took, even after its deletion was reported", () => {
    gone.add("acme");
    claims.retain("acme", []);
    claims.take("acme", ["a"], acme, unheld);
    expect(claims.take("globex", ["a"], globex, unheld)).toBeUndefined();
    expect(claims.take("initech", ["a"], initech, unheld)).toEqual({ id: "a", holder: "globex" });
  });

  it("gives what a deleted object holds according to the live object", () => {
    gone.add("acme");
    expect(claims.take("globex", ["a"], globex, () => "acme")).toBeUndefined();
  });

  it("refuses what the live object says another holds, though who took it last is gone", () => {
    gone.add("acme");
    claims.take("acme", ["a"], acme, unheld);
    expect(claims.take("globex", ["a"], globex, () => "initech")).toEqual({ id: "a", holder: "initech" });
  });

  it("takes nothing when one of several is refused", () => {
    claims.take("acme", ["b"], acme, unheld);
    claims.take("globex", ["a", "b"], globex, unheld);
    expect(claims.take("initech", ["a"], initech, unheld)).toBeUndefined();
  });
});

describe("who was refused", () => {
  beforeEach(() => {
    claims.take("acme", ["a", "b"], acme, unheld);
    claims.take("globex", ["a"], globex, unheld);
  });

  it("is woken when the holder no longer wants it, and may then have it", () => {
    claims.retain("acme", ["b"]);
    expect(woken).toEqual([globex]);
    expect(claims.take("globex", ["a"], globex, unheld)).toBeUndefined();
  });

  it("is woken when the live object is released", () => {
    claims.released("a");
    expect(woken).toEqual([globex]);
  });

  it("is woken once however often it asked", () => {
    claims.take("globex", ["a"], globex, unheld);
    claims.retain("acme", []);
    claims.retain("acme", []);
    expect(woken).toEqual([globex]);
  });

  it("is not woken any more when it is gone", () => {
    claims.drop("globex", globex);
    claims.retain("acme", []);
    expect(woken).toEqual([]);
  });

  it("is not woken by others releasing theirs", () => {
    claims.take("initech", ["c"], initech, unheld);
    claims.retain("initech", []);
    expect(woken).toEqual([]);
  });
});
