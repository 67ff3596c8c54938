import { setImmediate as afterRejections } from "node:timers/promises";
import type { ServiceError } from "@grpc/grpc-js";
import { isGrpcError } from "@pulumi/pulumi/errors";
import type { RunRequest } from "@pulumi/pulumi/proto/language_pb";
import type { ResourceMonitorClient } from "@pulumi/pulumi/proto/resource_grpc_pb";
import { type RegisterResourceRequest, type RegisterResourceResponse, Result } from "@pulumi/pulumi/proto/resource_pb";
import { guardRefused } from "../../providers/dynamic";
import { errorMessageOf, invalidProgram, RetryableError, type TerminalError } from "../../providers/errors";
import { NotRegisteredError } from "../../providers/registration";
import { GUARD_TYPE } from "../../providers/urn";
import { ENGINE, SDK } from "./messages";
import { withUnhandled } from "./unhandled";

type RegisterResource = ResourceMonitorClient["registerResource"];

/**
 * Runs a program in the SDK's own runtime, as the Automation API does for inline programs (`automation/server.js`), but
 * with errors that reach only the program that caused them: programs of several stacks run side by side here.
 *
 * @throws the program's errors; NotRegisteredError when the engine ended with a reason; RetryableError when the engine
 *   refused a resource, such as for a missing plugin
 */
export async function runSdkProgram(program: () => void | Promise<void>, request: RunRequest): Promise<void> {
  // Loaded for the first such program: the runtime takes memory that other kinds do not need.
  const [settings, state, stack, config, log] = await Promise.all([
    import("@pulumi/pulumi/runtime/settings.js"),
    import("@pulumi/pulumi/runtime/state.js"),
    import("@pulumi/pulumi/runtime/stack.js"),
    import("@pulumi/pulumi/runtime/config.js"),
    import("@pulumi/pulumi/log/index.js"),
  ]);
  // The SDK reports errors of its resources by promises that nothing awaits.
  const rejected: unknown[] = [];
  const { withLocalStorage } = state as unknown as { withLocalStorage(run: () => Promise<void>): Promise<void> };
  await withUnhandled(
    (error) => void rejected.push(error),
    () =>
      withLocalStorage(async () => {
        settings.resetOptions(
          request.getProject(),
          request.getStack(),
          request.getParallel(),
          request.getArgsList()[0] ?? "",
          request.getMonitorAddress(),
          request.getDryrun(),
          request.getOrganization(),
        );
        const unmade = noteUnmade(settings.getMonitor() as ResourceMonitorClient);
        config.setAllConfig(Object.fromEntries(request.getConfigMap().entries()), request.getConfigsecretkeysList());
        try {
          await stack.runInPulumiStack(async () => {
            await program();
          });
          await untilListening(globalThis.asyncLocalStorage.getStore());
          await (settings as unknown as { waitForRPCs(): Promise<void> }).waitForRPCs();
          await afterRejections();
          if (rejected.length > 0) throw rejected[0];
          if (unmade.names.size > 0) throw new NotRegisteredError(`${[...unmade.names].join(", ")}: not made`);
          if (log.hasErrors()) throw new NotRegisteredError("the program has logged an error");
          // Tells the engine that all is registered: it deletes the rest.
          await settings.disconnect(true);
        } catch (error) {
          await settings.disconnect(false);
          throw unmade.refusal ?? classified(error);
        }
      }),
  );
}

/**
 * Waits until the SDK listens for calls of hooks, if the program has any: only then are hooks registered that no resource names, such
 * as those of a deletion. Nothing else waits for that.
 */
async function untilListening(store: object | undefined): Promise<void> {
  const { callbacks } = (store ?? {}) as { callbacks?: { _target: Promise<string> } };
  await callbacks?._target;
}

interface Unmade {
  names: Set<string>;
  refusal: TerminalError | undefined;
}

/**
 * Notes the names of resources that the engine could not make. What uses an output of one is never registered, and must not
 * be deleted for that, also where the program has caught the error. Refuses what would be imported, as an import is
 * in no plan, and another guard.
 */
export function noteUnmade(monitor: ResourceMonitorClient): Unmade {
  const unmade: Unmade = { names: new Set(), refusal: undefined };
  const register = monitor.registerResource.bind(monitor) as (
    request: RegisterResourceRequest,
    callback: (error: ServiceError | null, response: RegisterResourceResponse) => void,
  ) => ReturnType<RegisterResource>;
  monitor.registerResource = ((request: RegisterResourceRequest, callback: (...answer: unknown[]) => void) => {
    const name = request.getName();
    const refusal =
      request.getImportid() !== "" ? importRefused(name) : request.getType() === GUARD_TYPE && guardRefused(name);
    if (refusal) {
      unmade.names.add(name);
      unmade.refusal = refusal;
      return callback(refusal);
    }
    return register(request, (error, response) => {
      if (error || response.getResult() !== Result.SUCCESS) unmade.names.add(name);
      callback(error, response);
    });
  }) as RegisterResource;
  return unmade;
}

function importRefused(name: string): TerminalError {
  return invalidProgram(
    `the option "import" of ${name}: an object imports nothing; read what exists, with "get" of its class or the option "id"`,
  );
}

function classified(error: unknown): unknown {
  const message = errorMessageOf(error);
  if ((error instanceof Error && isGrpcError(error)) || SDK.notMade.test(message))
    return new NotRegisteredError(message);
  if (!SDK.refused.test(message)) return error;
  const dependency = ENGINE.noPlugin.exec(message)?.groups?.plugin;
  return new RetryableError("UpdateFailed", message, { dependency });
}
