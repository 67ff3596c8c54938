import { describe, expect, it } from "vitest";
import { Editor, PROTECTIONS } from "./editor";
import { Subjects } from "./subjects";

const editor = new Editor(new Subjects());

describe("gestures of an editor", () => {
  it.each(PROTECTIONS)(
    "neither delete nor change what objects made, in any order, in Propose by %s",
    async (protection) => {
      const { accepted } = await editor.attack(protection, { count: 2, seed: 67 });
      expect(accepted).toBeGreaterThan(50);
    },
  );
});
