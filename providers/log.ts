/** Where code of a kind writes what people may want to know; with the operator, its log, with the object's fields. */
export interface Log {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

/** A log on standard error, for where there is no operator. @param about begins each line */
export function standardError(about: string): Log {
  const write = (level: string) => (message: string, fields?: object) => {
    const shown = fields === undefined ? "" : ` ${JSON.stringify(fields)}`;
    process.stderr.write(`${level} ${about}: ${message}${shown}\n`);
  };
  return { debug: () => {}, info: write("info"), warn: write("warn"), error: write("error") };
}
