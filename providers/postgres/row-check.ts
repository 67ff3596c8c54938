import { errorMessageOf } from "../errors";
import type { CheckFailure } from "../provider";
import { identifierProblem, isStorableText, parseTableName } from "./identifier";
import type { RowInputs } from "./row-inputs";

/** What is wrong with a row's inputs, property by property, as far as it can be told without a database. */
export function checkRow({ table, key = {}, values = {}, owner }: Partial<RowInputs>): CheckFailure[] {
  const failures: CheckFailure[] = [];
  const check = (property: string, reason: string | undefined) => {
    if (reason !== undefined) failures.push({ property, reason });
  };
  check("table", typeof table === "string" ? tableProblem(table) : "is required");
  const keys = Object.entries(key);
  if (keys.length !== 1) check("key", `must name exactly one column, not ${keys.length}`);
  else {
    for (const [column, value] of keys) {
      check("key", columnProblem(column));
      check(`key.${column}`, typeof value === "string" ? textProblem(value) : "must be a text");
    }
  }
  if (Object.keys(values).length === 0) check("values", "must name at least one column");
  for (const [column, value] of Object.entries(values)) {
    const isKey = Object.hasOwn(key, column);
    const isSingle = typeof value !== "object" || value === null;
    if (!isKey) check("values", columnProblem(column));
    check(`values.${column}`, isKey ? "is the key column" : isSingle ? textProblem(value) : "must be a single value");
  }
  check("owner.uid", owner?.uid ? undefined : "is required");
  return failures;
}

function tableProblem(table: string): string | undefined {
  try {
    parseTableName(table, "table");
    return undefined;
  } catch (error) {
    return errorMessageOf(error);
  }
}

function columnProblem(column: string): string | undefined {
  const problem = identifierProblem(column);
  return problem && `column ${JSON.stringify(column)}: ${problem}`;
}

function textProblem(value: unknown): string | undefined {
  return typeof value !== "string" || isStorableText(value) ? undefined : "must not contain NUL or unpaired surrogates";
}
