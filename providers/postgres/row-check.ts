import { errorMessageOf } from "../errors";
import type { CheckFailure } from "../provider";
import { identifierProblem, isStorableText, parseTableName } from "./identifier";
import type { RowInputs } from "./row-inputs";

/** What is wrong with a row's inputs, property by property, as far as it can be told without a database. */
export function checkRow(inputs: Partial<RowInputs>): CheckFailure[] {
  const failures = [...checkTable(inputs.table), ...checkKey(inputs.key), ...checkValues(inputs)];
  if (!inputs.owner?.uid) failures.push({ property: "owner.uid", reason: "is required" });
  return failures;
}

function checkTable(table: unknown): CheckFailure[] {
  if (typeof table !== "string") return [{ property: "table", reason: "is required" }];
  try {
    parseTableName(table, "table");
    return [];
  } catch (error) {
    return [{ property: "table", reason: errorMessageOf(error) }];
  }
}

function checkKey(key: RowInputs["key"] | undefined): CheckFailure[] {
  const entries = Object.entries(key ?? {});
  if (entries.length !== 1) {
    return [{ property: "key", reason: `must name exactly one column, not ${entries.length}` }];
  }
  return entries.flatMap(([column, value]) => [
    ...checkColumn("key", column),
    ...(typeof value === "string" ? checkText(`key.${column}`, value) : [textRequired(`key.${column}`)]),
  ]);
}

function checkValues({ key, values }: Partial<RowInputs>): CheckFailure[] {
  const entries = Object.entries(values ?? {});
  if (entries.length === 0) return [{ property: "values", reason: "must name at least one column" }];
  return entries.flatMap(([column, value]) => {
    const property = `values.${column}`;
    if (key !== undefined && column in key) return [{ property, reason: "is the key column" }];
    return [
      ...checkColumn("values", column),
      ...(typeof value === "string" ? checkText(property, value) : []),
      ...(typeof value === "object" && value !== null ? [{ property, reason: "must be a single value" }] : []),
    ];
  });
}

function checkColumn(property: string, column: string): CheckFailure[] {
  const problem = identifierProblem(column);
  return problem === undefined ? [] : [{ property, reason: `column ${JSON.stringify(column)}: ${problem}` }];
}

function checkText(property: string, text: string): CheckFailure[] {
  return isStorableText(text) ? [] : [{ property, reason: "must not contain NUL or unpaired surrogates" }];
}

function textRequired(property: string): CheckFailure {
  return { property, reason: "must be a text" };
}
