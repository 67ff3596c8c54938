import { promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { type ILanguageRuntimeServer, LanguageRuntimeService } from "@pulumi/pulumi/proto/language_grpc_pb";
import { GetRequiredPackagesResponse, type RunRequest, RunResponse } from "@pulumi/pulumi/proto/language_pb";
import { PluginInfo } from "@pulumi/pulumi/proto/plugin_pb";
import { ResourceMonitorClient } from "@pulumi/pulumi/proto/resource_grpc_pb";
import { version } from "@pulumi/pulumi/version";
import { errorMessageOf } from "../../providers/errors";
import { NotRegisteredError, Registrations, withRegistrations } from "../../providers/registration";
import { runSdkProgram } from "./sdk-program";

/** What a Pulumi program is here: a function that registers resources. */
export type Program = () => void | Promise<void>;

/** A program that an engine can run, at an address for its `--client` flag. */
export interface ServedProgram {
  address: string;
  /** What the program threw, with the class that is lost on the way through the engine. */
  error(): unknown;
  /** Ends the program's wait for a resource ({@link Registrations.abandon}); one of the SDK's runtime waits on. */
  abandon(urn: string): void;
  close(): void;
}

export interface ProgramOptions {
  /** Run it in the SDK's runtime ({@link Capabilities.sdkRuntime}). */
  sdkRuntime?: boolean | undefined;
}

/** Serves a program in this process, so that no language host has to be started or even installed. */
export async function serveProgram(
  program: Program,
  { sdkRuntime = false }: ProgramOptions = {},
): Promise<ServedProgram> {
  let thrown: unknown;
  let registrations: Registrations | undefined;
  const server = new grpc.Server();
  server.addService(
    LanguageRuntimeService,
    languageRuntime(async (request) => {
      const response = new RunResponse();
      const monitor = new ResourceMonitorClient(request.getMonitorAddress(), grpc.credentials.createInsecure());
      try {
        if (sdkRuntime) await runSdkProgram(program, request);
        else {
          registrations = new Registrations(monitor, { project: request.getProject(), stack: request.getStack() });
          await withRegistrations(registrations, program);
        }
        return response;
      } catch (error) {
        // What was not registered because something failed must not be deleted for that: the engine hears of it.
        if (error instanceof NotRegisteredError) return response.setError(error.message).setBail(true);
        thrown = error;
        return response.setError(errorMessageOf(error));
      } finally {
        monitor.close();
      }
    }),
  );
  const bind = promisify(server.bindAsync.bind(server));
  const port = await bind("127.0.0.1:0", grpc.ServerCredentials.createInsecure());
  return {
    address: `127.0.0.1:${port}`,
    error: () => thrown,
    abandon: (urn) => registrations?.abandon(urn),
    close: () => server.forceShutdown(),
  };
}

/** The part of Pulumi's language-runtime service that an engine needs of a program that runs already. */
function languageRuntime(
  answer: (request: RunRequest) => Promise<RunResponse>,
): Pick<ILanguageRuntimeServer, "run" | "getRequiredPackages" | "getPluginInfo"> & grpc.UntypedServiceImplementation {
  return {
    run: (call, callback) => void answer(call.request).then((response) => callback(null, response)),
    getRequiredPackages: (_call, callback) => callback(null, new GetRequiredPackagesResponse()),
    getPluginInfo: (_call, callback) => callback(null, new PluginInfo().setVersion(version)),
  };
}
