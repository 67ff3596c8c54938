import * as grpc from "@grpc/grpc-js";
import { LanguageRuntimeService } from "@pulumi/pulumi/proto/language_grpc_pb";

/** What a Pulumi program is here: a function that registers resources. */
export type Program = () => void | Promise<void>;

// The Automation API's own server for inline programs. The SDK keeps it out of its type declarations, but it is what
// `Stack.up` uses; versions of SDK and CLI are pinned to the same number.
const { LanguageServer } = require("@pulumi/pulumi/automation/server") as {
  LanguageServer: new (
    program: Program,
  ) => grpc.UntypedServiceImplementation & { onPulumiExit(hasError: boolean): void };
};

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
