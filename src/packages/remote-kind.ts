import { declareAgain } from "../../providers/declared-again";
import type { DefinedProvider } from "../../providers/dynamic";
import { type ErrorData, errorOf } from "../../providers/error-data";
import { type ClassifiedError, RetryableError, TerminalError } from "../../providers/errors";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { Owner } from "../../providers/kubernetes/ownership";
import type { CallContext, DynamicProvider, Properties, ProviderContext } from "../../providers/provider";
import { ENDINGS } from "../../providers/reasons";
import { runningProgram } from "../../providers/registration";
import type { Maintenance, OutputsOf } from "../../stacks/contract/capabilities";
import { type AnyKind, kindName, type RemotePrograms } from "../../stacks/contract/kind";
import type { KindObject } from "../../stacks/contract/object";
import { observedObject } from "../../stacks/contract/references";
import type { RunContext } from "../../stacks/contract/run-context";
import { outputsBehind } from "../controller/output-fields";
import { answers, parseAnswer, parseFunctionAnswer } from "./answers";
import { fromDescription } from "./description";
import type { FunctionPath, Target } from "./messages";
import type { PackageProcess } from "./process";
import type { CallOptions } from "./runner";

/** Conversions and validations answer requests of the API server, which waits for 10 s. */
const ADMISSION_MS = 5_000;
/** Pure functions compute; what takes longer belongs into a program or a provider. */
const FUNCTION_MS = 10_000;
const REPORTS: ReadonlySet<string> = new Set(["report", "readyWhen", "conditions"]);
/** The process is told the same limit as well, and answers better. */
const SLACK_MS = 1_000;

/** A kind whose functions are called in the process of its package. @param description what `describeValue` made of the kind */
export function remoteKind(description: object, process: Pick<PackageProcess, "call">, timeoutMs: number): AnyKind {
  const { kind: name, directory } = description as AnyKind;
  const id = kindName(description as AnyKind);
  const what = (path: FunctionPath) => `${path.join(".")} of ${name}`;
  const call = (target: Target, args: readonly unknown[], options: Partial<CallOptions> & Pick<CallOptions, "what">) =>
    process.call(target, args, { limitMs: timeoutMs, isPure: false, ...options });

  const pure =
    (path: FunctionPath, limitMs: number) =>
    async (...given: unknown[]) => {
      const target = { type: "function", kind: id, path } as const;
      const isReport = REPORTS.has(String(path.at(-1)));
      const answer = await call(target, given.map(plain), { what: what(path), limitMs, isPure: true, isReport });
      return parseFunctionAnswer(path, answer, what(path));
    };

  const maintain = async (object: KindObject, { owned, memory, ...maintenance }: Maintenance) => {
    const onAsk = (method: string, given: readonly unknown[]) => {
      if (!Object.hasOwn(maintenance, method)) throw new TypeError(`maintain has no ${method}`);
      return (maintenance as unknown as Record<string, (...given: unknown[]) => unknown>)[method]?.(...given);
    };
    const answer = await call({ type: "maintain", kind: id }, [object, owned, memory], {
      what: `maintain of ${name}`,
      onAsk,
    });
    const { requeueAfterMs, memory: kept } = parseAnswer(answers.maintain, answer, `maintain of ${name}`);
    memory.clear();
    for (const [key, value] of kept) memory.set(key, value);
    return requeueAfterMs === undefined ? undefined : { requeueAfterMs };
  };

  const findDrift = async (objects: readonly KindObject[]) => {
    const path = ["capabilities", "external", "findDrift"];
    const answer = await call({ type: "function", kind: id, path }, [objects], { what: what(path) });
    const { drifted, unknown } = parseAnswer(answers.drift, answer, what(path));
    const errors = [...unknown].map(([uid, error]) => [uid, errorOf(error as ErrorData) as ClassifiedError] as const);
    return { drifted, unknown: new Map(errors) };
  };

  const removeUntracked = async (
    owner: Owner,
    kept: readonly Properties[],
    options: { release: boolean },
    context: ProviderContext,
  ) => {
    const { fence, signal, log } = context;
    const ended = new AbortController(); // the work's fence may stand for ever, and the process would, too
    const end = () => ended.abort(fence.signal.reason);
    fence.signal.addEventListener("abort", end, { once: true });
    const own = { ...context, fence: { check: fence.check, signal: ended.signal } };
    try {
      const what = `removeUntracked of ${name}`;
      const given = [owner, kept, options];
      const answer = await call({ type: "removeUntracked", kind: id }, given, { what, context: own, signal, log });
      return parseAnswer(answers.untracked, answer, what) ?? [];
    } finally {
      fence.signal.removeEventListener("abort", end);
      ended.abort(new RetryableError("UpdateEnded", "the work that this belongs to has ended"));
    }
  };

  const output = (field: string) => (outputsOf: OutputsOf, object: KindObject) =>
    call({ type: "output", kind: id, field }, [outputsBehind(outputsOf), object], {
      what: `outputs.${field} of ${name}`,
      limitMs: FUNCTION_MS,
      isPure: true,
    });

  const bySpecial: Readonly<Record<string, unknown>> = {
    program: () => {
      throw new TypeError(`the program of ${name} runs in another process`);
    },
    "capabilities.maintain": maintain,
    "capabilities.external.findDrift": findDrift,
    "capabilities.external.removeUntracked": removeUntracked,
  };
  const functionAt = (path: FunctionPath) => {
    const [first, second, third] = path;
    if (first === "capabilities" && second === "outputs") return output(String(third));
    const isAdmission = first === "validate" || second === "versions";
    return bySpecial[path.join(".")] ?? pure(path, isAdmission ? ADMISSION_MS : FUNCTION_MS);
  };

  const { providers, settings, ...capabilities } = (description as { capabilities: DescribedCapabilities })
    .capabilities;
  const described = { ...description, capabilities };
  const served = fromDescription(described, functionAt) as AnyKind & { capabilities: object };
  return {
    ...served,
    directory,
    capabilities: {
      ...served.capabilities,
      ...(settings !== undefined && { settings: () => settings }),
      ...(providers && { providers: providers.map((provider) => remoteProvider(provider, process)) }),
    },
    remote: programs(),
  };

  function programs(): RemotePrograms {
    const told = (
      given: KindObject,
      { log: _, owned, watched, cached, recorded, owner, cluster, referenced }: RunContext,
    ) => {
      const { object, looked } = observedObject(given);
      const context = { owner, owned, watched, recorded, cluster, cached, referenced };
      return { args: [object, context] as const, looked };
    };
    return {
      async run(given, context) {
        if (served.capabilities.sdkRuntime && runningProgram().registrations === undefined) {
          const problem = "has sdkRuntime and is of a package, which Pulumi's Automation API cannot run";
          throw new TerminalError("Misconfigured", `${name} ${problem}: unset KINDSTACK_ENGINE`);
        }
        const { args, looked } = told(given, context);
        const answer = await call({ type: "program", kind: id }, [...args, timeoutMs], {
          what: `the program of ${name}`,
          limitMs: timeoutMs + SLACK_MS,
          isPure: true,
          log: context.log,
        });
        const program = parseAnswer(answers.program, answer, `the program of ${name}`);
        if (program.looked) looked();
        declareAgain(program.resources);
      },
      async runInSdk(given, context, request, signal) {
        const { args, looked } = told(given, context);
        const answer = await call({ type: "sdkProgram", kind: id }, [...args, request], {
          what: `the program of ${name}`,
          limitMs: undefined,
          log: context.log,
          signal,
        });
        if (parseAnswer(answers.sdkProgram, answer, `the program of ${name}`).looked) looked();
      },
    };
  }
}

interface DescribedCapabilities {
  providers?: (Pick<DefinedProvider, "stub" | "version"> & { provider: object })[];
  settings?: unknown;
}

/** An argument as it can cross: an object that tells when its metadata is looked at is sent as it is. */
function plain(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  return observedObject(value as KindObject).object as unknown as LiveObject;
}

/** What a package's provider is called for, each with the number of arguments before the context. */
const PROVIDER_CALLS = { check: 2, diff: 3, create: 1, read: 2, update: 3, delete: 2, observe: 2 };

/** A provider of a package, whose calls run in the process of the package. */
function remoteProvider(
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
  const { observe } = described as Partial<Record<keyof DynamicProvider, unknown>>;
  const calls = Object.entries(PROVIDER_CALLS).map(([method, count]) => [
    method,
    (...given: unknown[]) => call(method, given.slice(0, count), given[count] as CallContext),
  ]);
  const { observe: observed, ...methods } = Object.fromEntries(calls) as Pick<
    Required<DynamicProvider>,
    keyof typeof PROVIDER_CALLS
  >;
  const provider: DynamicProvider = {
    ...methods,
    async release(id, outs, context) {
      try {
        await call("release", [id, outs], context);
      } catch (error) {
        if (!(error instanceof RetryableError && ENDINGS.includes(error.reason))) throw error;
        context?.log.warn("a provider could not release a resource", { id });
      }
    },
    ...(observe !== undefined && { observe: observed }),
  };
  return { stub, provider, ...(version !== undefined && { version }) };
}
