import { escapeHtml } from "../text/plain-text";

/** Text that is HTML already. Only {@link html} makes it. */
export class Html {
  constructor(readonly text: string) {}
}

export type Value = Html | string | number | undefined | false | readonly Value[];

/** HTML of a template. Values are escaped, except HTML that this function made. Attributes must be quoted. */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(parts.reduce((text, part, index) => text + textOf(values[index - 1]) + part));
}

function textOf(value: Value): string {
  if (value === undefined || value === false) return "";
  if (value instanceof Html) return value.text;
  if (typeof value === "object") return value.map(textOf).join("");
  return escapeHtml(String(value));
}
