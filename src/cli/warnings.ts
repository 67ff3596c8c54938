import type { Logger } from "pino";

/** Deprecations concern the authors of a library: you can do nothing about them. */
const isForAuthors = ({ name }: Error) => name === "DeprecationWarning";

function listen(print: (warning: Error) => void): void {
  process.removeAllListeners("warning"); // Node.js's own, which prints two lines
  process.on("warning", (warning) => {
    if (!isForAuthors(warning) || process.env.NODE_OPTIONS?.includes("deprecation")) print(warning);
  });
}

/** From now on, Node.js's warnings are lines of this log. */
export function logWarnings(logger: Pick<Logger, "warn">): void {
  listen((warning) => logger.warn({ err: warning }, "warning of Node.js"));
}

// Imported before what may cause one.
listen((warning) => console.error(`kindstack: ${warning.name}: ${warning.message}`));
