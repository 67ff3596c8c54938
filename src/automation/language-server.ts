import { promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { type ILanguageRuntimeServer, LanguageRuntimeService } from "@pulumi/pulumi/proto/language_grpc_pb";
import { GetRequiredPackagesResponse, type RunRequest, RunResponse } from "@pulumi/pulumi/proto/language_pb";
import { PluginInfo } from "@pulumi/pulumi/proto/plugin_pb";
import { version } from "@pulumi/pulumi/version";
import { asError, errorMessageOf, RetryableError } from "../../providers/errors";
import { NotRegisteredError } from "../../providers/registration";

/** The part of Pulumi's language-runtime service that an engine needs of a program that runs already. */
type LanguageRuntime = Pick<ILanguageRuntimeServer, "run" | "getRequiredPackages" | "getPluginInfo"> &
  grpc.UntypedServiceImplementation;

/**
 * Serves a program of the SDK's runtime in this process, so that no language host has to be started or even installed.
 *
 * @param runProgram its signal tells that the engine asks no more
 */
export async function serveProgram(runProgram: (request: RunRequest, signal: AbortSignal) => Promise<void>) {
  const closing = new AbortController();
  let thrown: unknown;
  const server = new grpc.Server();
  const run = async (request: RunRequest): Promise<RunResponse> => {
    const response = new RunResponse();
    try {
      await runProgram(request, closing.signal);
      return response;
    } catch (error) {
      // Resources that a failure kept from being registered must not be deleted: the engine gets the failure.
      if (error instanceof NotRegisteredError) return response.setError(error.message).setBail(true);
      thrown = asError(error);
      return response.setError(errorMessageOf(error));
    }
  };
  const runtime: LanguageRuntime = {
    run: (call, callback) => void run(call.request).then((response) => callback(null, response)),
    getRequiredPackages: (_call, callback) => callback(null, new GetRequiredPackagesResponse()),
    getPluginInfo: (_call, callback) => callback(null, new PluginInfo().setVersion(version)),
  };
  server.addService(LanguageRuntimeService, runtime);
  const port = await promisify(server.bindAsync.bind(server))("127.0.0.1:0", grpc.ServerCredentials.createInsecure());
  return {
    parameter: { address: `127.0.0.1:${port}` },
    error: () => thrown,
    close() {
      closing.abort(new RetryableError("UpdateEnded", "the update of this program has ended"));
      server.forceShutdown();
    },
  };
}
