import type Type from "typebox";
import { Compile } from "typebox/compile";

/** A reader of what Kindstack keeps as JSON in annotations. It returns `undefined` for anything else. */
export function jsonReader<const S extends Type.TSchema>(schema: S): (text?: string) => Type.Static<S> | undefined {
  const validator = Compile(schema);
  return (text = "") => {
    try {
      const value: unknown = JSON.parse(text);
      return validator.Check(value) ? value : undefined;
    } catch {
      return undefined;
    }
  };
}
