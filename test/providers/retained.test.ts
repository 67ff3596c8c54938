import { describe, expect, it } from "vitest";
import { isRetained, RETAINED } from "../../providers/resource-options";
import { recorded, Things } from "../automation/things";

const things = new Things();
const provider = recorded(things);
const plain = { key: "a", value: "1" };
const retained = { ...plain, [RETAINED]: true };

describe("a resource with retainOnDelete", () => {
  it("is released where it would be deleted", async () => {
    const { id, outs } = await provider.create(retained);
    await provider.delete(id, outs);
    expect(things.released).toEqual(["a"]);
    expect(things.live.has("a")).toBe(true);
  });

  it("remembers that through a refresh, and until the program says otherwise", async () => {
    const { id, outs } = await provider.create(retained);
    const { props } = await provider.read(id, outs);
    expect(isRetained(props ?? {})).toBe(true);
    expect(await provider.diff(id, outs, retained)).toEqual({ changes: false });
    expect(await provider.diff(id, outs, plain)).toMatchObject({ changes: true });
    const { outs: updated } = await provider.update(id, outs, plain);
    await provider.delete(id, updated);
    expect(things.live.has("a")).toBe(false);
  });
});
