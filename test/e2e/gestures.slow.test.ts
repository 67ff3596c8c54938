import { describe, expect, it } from "vitest";
import { Editor, PROTECTIONS } from "./editor";
import { Subjects } from "./subjects";

const editor = new Editor(new Subjects());

describe("many gestures of an editor", () => {
  it.each(PROTECTIONS)(
    "neither delete nor change what objects made, in any order, in Propose by %s",
    async (protection) => {
      const { accepted } = await editor.attack(protection, { count: 8, seed: 6767 });
      expect(accepted).toBeGreaterThan(200);
    },
  );
});
