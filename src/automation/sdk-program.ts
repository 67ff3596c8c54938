import { setImmediate as afterRejections } from "node:timers/promises";
import type { ServiceError } from "@grpc/grpc-js";
import { isGrpcError } from "@pulumi/pulumi/errors";
import type { RunRequest } from "@pulumi/pulumi/proto/language_pb";
import type { ResourceMonitorClient } from "@pulumi/pulumi/proto/resource_grpc_pb";
import { type RegisterResourceRequest, type RegisterResourceResponse, Result } from "@pulumi/pulumi/proto/resource_pb";
import { errorMessageOf, RetryableError } from "../../providers/errors";
import { NotRegisteredError } from "../../providers/registration";
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
          if (unmade.size > 0) throw new NotRegisteredError(`${[...unmade].join(", ")}: not made`);
          if (log.hasErrors()) throw new NotRegisteredError("the program has logged an error");
          // Tells the engine that all is registered: it deletes the rest.
          await settings.disconnect(true);
        } catch (error) {
          await settings.disconnect(false);
          throw classified(error);
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

/**
 * Notes the names of resources that the engine could not make. What uses an output of one is never registered, and must not
 * be deleted for that, also where the program has caught the error.
 */
export function noteUnmade(monitor: ResourceMonitorClient): ReadonlySet<string> {
  const unmade = new Set<string>();
  const register = monitor.registerResource.bind(monitor) as (
    request: RegisterResourceRequest,
    callback: (error: ServiceError | null, response: RegisterResourceResponse) => void,
  ) => ReturnType<RegisterResource>;
  monitor.registerResource = ((request: RegisterResourceRequest, callback: Parameters<typeof register>[1]) =>
    register(request, (error, response) => {
      if (error || response.getResult() !== Result.SUCCESS) unmade.add(request.getName());
      callback(error, response);
    })) as RegisterResource;
  return unmade;
}

/** What the SDK makes of an answer that says that a resource failed or was skipped; the engine has told why. */
const NOT_MADE = /(^|: )resource .+ failed to register$/;
/** The engine's own refusal, such as for a missing plugin. */
const REFUSED = /^failed to register new resource /;

function classified(error: unknown): unknown {
  const message = errorMessageOf(error);
  if ((error instanceof Error && isGrpcError(error)) || NOT_MADE.test(message)) return new NotRegisteredError(message);
  if (!REFUSED.test(message)) return error;
  const [, dependency] = /no resource (plugin '[^']+')/.exec(message) ?? [];
  return new RetryableError("UpdateFailed", message, { dependency });
}
