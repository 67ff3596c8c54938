import { AsyncLocalStorage } from "node:async_hooks";

/** Takes an error that nothing awaits or catches: a rejected promise, a throw in a timer. */
export type UnhandledErrorHandler = (error: unknown) => void;

/** Node.js forces it to be implicit: an unhandled error comes with nothing but the asynchronous context of its cause. */
const handlers = new AsyncLocalStorage<UnhandledErrorHandler>();

/**
 * Runs the work of one object and passes its unhandled errors, also later ones, to `handle`. Otherwise Node.js would end the
 * process, and with it the work of all objects.
 */
export function withUnhandled<T>(handle: UnhandledErrorHandler, work: () => T): T {
  divertUnhandled();
  return handlers.run(handle, work);
}

/** Takes unhandled errors as the work does that is running. */
export function currentUnhandled(): UnhandledErrorHandler | undefined {
  return handlers.getStore();
}

let diverted = false;

/** Assigns unhandled errors to the work that caused them; all other errors are handled as before. */
function divertUnhandled(): void {
  if (diverted) return;
  diverted = true;
  const onRejection = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", (error, promise) => {
    divert(error, onRejection, (listener) => listener(error, promise));
  });
  const onException = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", (error, origin) => {
    divert(error, onException, (listener) => listener(error, origin));
  });
}

function divert<L>(error: unknown, others: readonly L[], tell: (listener: L) => void): void {
  const handle = handlers.getStore();
  if (handle !== undefined) handle(error);
  else if (others.length === 0) throw error;
  else others.forEach(tell);
}
