import { afterEach, expect, it, vi } from "vitest";
import { renderText } from "../../src/cli/render-text";
import { coloured } from "../../src/text/colour";
import { renderTable } from "../../src/text/table";

afterEach(() => vi.unstubAllEnvs());

it("what is deleted or wrong is red where the output shows colours, and plain elsewhere", () => {
  expect([coloured("delete"), coloured("name")]).toEqual(["delete", "name"]);
  vi.stubEnv("FORCE_COLOR", "1");
  expect([coloured("delete"), coloured("name")]).toEqual(["\u001b[31mdelete\u001b[39m", "name"]);
  vi.stubEnv("FORCE_COLOR", undefined);
  vi.stubEnv("NO_COLOR", "1");
  expect(coloured("delete")).toBe("delete");
});

it("colours change neither the columns of a table nor what a report says", () => {
  const report = {
    ...{ problems: [], unchecked: ["a type"], unseenDeletions: [], behind: [], notes: [], summary: { delete: 1 } },
    objects: [
      {
        ...{ kind: "PodSet", namespace: "team", name: "web", action: "delete", errors: [], notes: [] },
        resources: [{ operation: "delete", type: "Pod", name: "web-1", fields: [] }],
      },
    ],
  } as unknown as Parameters<typeof renderText>[0];
  const rows = Object.entries({ False: "web", True: "b" });
  const render = () => [renderTable(["ready", "name"], rows), renderText(report)];

  const plain = render();
  vi.stubEnv("FORCE_COLOR", "1");
  const shown = render();

  expect(shown).not.toEqual(plain);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  expect(shown.map((text) => text.replace(/\u001b\[\d+m/g, ""))).toEqual(plain);
});
