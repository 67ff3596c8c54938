import { expect, it } from "vitest";
import { wrapped } from "../../src/cli/wrapped-help";

it.each([
  ["prose", "a sentence that is longer than that", 20, "a sentence that is\nlonger than that"],
  [
    "the last column of a table",
    "KEY  MEANING\nname  the name of what is installed in a cluster",
    36,
    "KEY  MEANING\nname  the name of what is installed\n      in a cluster",
  ],
  [
    "a narrow last column below the others",
    "a-long-key  a meaning of some words",
    30,
    "a-long-key\n      a meaning of some words",
  ],
  ["no command", "  kindstack approve tenants a --group b", 20, "  kindstack approve tenants a --group b"],
])("breaks %s", (_, text, width, expected) => {
  expect(wrapped(text, width)).toBe(expected);
});
