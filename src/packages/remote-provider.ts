import type { DefinedProvider } from "../../providers/dynamic";
import { RetryableError } from "../../providers/errors";
import type { CallContext, DynamicProvider } from "../../providers/provider";
import { ENDINGS } from "../../providers/reasons";
import type { PackageProcess } from "./process";

/** A provider of a package, whose calls run in the process of the package. */
export function remoteProvider(
  { stub, version, provider: described }: Pick<DefinedProvider, "stub" | "version"> & { provider: object },
  process: Pick<PackageProcess, "call">,
): DefinedProvider {
  const call = async (method: string, args: readonly unknown[], context: CallContext): Promise<unknown> =>
    process.call({ type: "provider", stub, method }, args, {
      what: `${method} of a provider`,
      limitMs: undefined,
      isPure: false,
      context,
      signal: context?.signal,
      log: context?.log,
    });
  type Answer<Method extends "check" | "diff" | "create" | "read" | "update" | "delete" | "observe"> = ReturnType<
    Required<DynamicProvider>[Method]
  >;
  const { observe, comparesInWrite } = described as Partial<Record<keyof DynamicProvider, unknown>>;
  const provider: DynamicProvider = {
    check: (olds, news, context) => call("check", [olds, news], context) as Answer<"check">,
    diff: (id, olds, news, context) => call("diff", [id, olds, news], context) as Answer<"diff">,
    create: (inputs, context) => call("create", [inputs], context) as Answer<"create">,
    read: (id, outs, context) => call("read", [id, outs], context) as Answer<"read">,
    update: (id, olds, news, context) => call("update", [id, olds, news], context) as Answer<"update">,
    delete: (id, outs, context) => call("delete", [id, outs], context) as Answer<"delete">,
    async release(id, outs, context) {
      try {
        await call("release", [id, outs], context);
      } catch (error) {
        if (!(error instanceof RetryableError && ENDINGS.includes(error.reason))) throw error;
        context?.log.warn("a provider could not release a resource", { id });
      }
    },
    ...(observe !== undefined && {
      observe: (inputs, outs, context) => call("observe", [inputs, outs], context) as Answer<"observe">,
    }),
    ...(comparesInWrite === true && { comparesInWrite }),
  };
  return { stub, provider, ...(version !== undefined && { version }) };
}
