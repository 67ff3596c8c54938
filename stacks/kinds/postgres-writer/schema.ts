import Type from "typebox";

/** Everything but NUL, which no text column takes. */
const TEXT = "^[^\\x00]*$";

export const postgresWriterSpec = Type.Object({
  table: Type.String({
    description: 'The table that holds the row, "table" or "schema.table". Another table moves the row.',
    maxLength: 127,
    pattern: "^[^.\\x00]{1,63}([.][^.\\x00]{1,63})?$",
  }),
  name: Type.String({ description: "The row's name.", maxLength: 1024, pattern: TEXT }),
  age: Type.Integer({ description: "The row's age.", minimum: 0, maximum: 2147483647 }),
  country: Type.String({ description: "The row's country.", maxLength: 1024, pattern: TEXT }),
});
export type PostgresWriterSpec = Type.Static<typeof postgresWriterSpec>;

export const postgresWriterStatus = Type.Object({
  id: Type.String({ description: "The row's primary key: the object's namespace and name." }),
});
