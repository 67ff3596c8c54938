import { expect, it } from "vitest";
import { renderTable } from "../../src/text/table";

it("a table has columns as wide as what is in them, and no blanks at the ends of lines", () => {
  const table = renderTable(["name", "age"], Object.entries({ Ada: 36, Katherine: 101 }));

  expect(table).toBe("NAME       AGE\nAda        36\nKatherine  101");
});

it("a table shows what is in it without effect on the terminal", () => {
  expect(renderTable(["name"], [["\u001b[2J\u202ea\nb"]])).toBe("NAME\n\\u001b[2J\\u202ea\\u000ab");
});
