import { expect, it } from "vitest";
import { renderTable } from "../src/table";

it("a table has columns as wide as what is in them, and no blanks at the ends of lines", () => {
  const table = renderTable(
    ["name", "age"],
    [
      ["Ada", 36],
      ["Katherine", 101],
    ],
  );

  expect(table).toBe("NAME       AGE\nAda        36\nKatherine  101");
});
