import { AsyncLocalStorage } from "node:async_hooks";
import * as grpc from "@grpc/grpc-js";
import { LanguageRuntimeService } from "@pulumi/pulumi/proto/language_grpc_pb";

/** What a Pulumi program is here: a function that registers resources. */
export type Program = () => void | Promise<void>;

// The Automation API's own server for inline programs. The SDK keeps it out of its type declarations, but it is what
// `Stack.up` uses; versions of SDK and CLI are pinned to the same number.
const { LanguageServer } = require("@pulumi/pulumi/automation/server") as {
  LanguageServer: new (
    program: Program,
  ) => grpc.UntypedServiceImplementation & { onPulumiExit(hasError: boolean): void; run(...call: unknown[]): unknown };
};

/** The program whose code runs. */
const running = new AsyncLocalStorage<object>();
const UNCAUGHT = ["uncaughtException", "unhandledRejection"] as const;

/** A program that an engine can run, at an address for its `--client` flag. */
export interface ServedProgram {
  address: string;
  /** What the program threw, with the class that is lost on the way through the engine. */
  error(): unknown;
  close(): void;
}

/** Serves a program in this process, so that no language host has to be started or even installed. */
export async function serveProgram(program: Program): Promise<ServedProgram> {
  let thrown: unknown;
  const languageServer = new LanguageServer(async () => {
    try {
      await program();
    } catch (error) {
      thrown = error;
      throw error;
    }
  });
  const run = languageServer.run.bind(languageServer);
  languageServer.run = (...call) => running.run(languageServer, () => hearingOnlyItsOwn(() => run(...call)));
  const server = new grpc.Server();
  server.addService(LanguageRuntimeService, languageServer);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  return {
    address: `127.0.0.1:${port}`,
    error: () => thrown,
    close() {
      languageServer.onPulumiExit(true); // `true`: no check for leaked promises, a program of ours leaks none by design
      server.forceShutdown();
    },
  };
}

/**
 * While a program runs, the SDK listens for whatever nobody in this process has caught: of a stack that several objects
 * share, that is a resource that failed. A listener that `start` adds is not told what is another program's, which would
 * fail this one as well. It is removed as what it was added as, by the name that events' emitters know it by.
 */
function hearingOnlyItsOwn<T>(start: () => T): T {
  const program = running.getStore();
  const before = UNCAUGHT.map((event) => process.rawListeners(event));
  const result = start();
  for (const [index, event] of UNCAUGHT.entries()) {
    for (const listener of process.rawListeners(event).filter((listener) => !before[index]?.includes(listener))) {
      const told = (...news: unknown[]) => {
        const raiser = running.getStore();
        if (raiser === undefined || raiser === program) listener.apply(process, news);
      };
      process.off(event, listener as () => void);
      process.on(event, Object.assign(told, { listener }));
    }
  }
  return result;
}
