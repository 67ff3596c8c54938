import { resolve, sep } from "node:path";
import type { RunRequest } from "@pulumi/pulumi/proto/language_pb";
import { dataOf } from "../../providers/error-data";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import type { Owner } from "../../providers/kubernetes/ownership";
import type { Log } from "../../providers/log";
import type { Properties, ProviderContext } from "../../providers/provider";
import type { DriftReport, Maintenance } from "../../stacks/contract/capabilities";
import { type AnyKind, kindName, type OutputField } from "../../stacks/contract/kind";
import type { KindObject } from "../../stacks/contract/object";
import { observingMetadata } from "../../stacks/contract/references";
import type { RunContext } from "../../stacks/contract/run-context";
import { runProgram } from "../../stacks/contract/run-program";
import type { EntryKinds } from "../../stacks/kinds/catalog";
import { declaredInTime } from "../automation/program";
import type { Answer } from "./answers";
import { describeValue } from "./description";
import type { FunctionPath, Target } from "./messages";

/** What a call has at hand besides its arguments. */
export interface Caller {
  log: Log;
  /** Of calls that are part of an update. */
  context: ProviderContext | undefined;
  /** Runs code of the call that follows a pause so that it can be told from others' up to the next one. */
  titled<T>(work: () => T): T;
  ask(method: string, ...given: unknown[]): Promise<unknown>;
}

/** Kindstack's compiled code. */
const KINDSTACK = resolve(__dirname, "../..") + sep;

/** Capabilities that are called with the operator's own client, and so with its rights. */
const NOT_SERVED = ["admission", "namespaceView"] as const;

type Calls = {
  [Type in Target["type"]]: (
    code: PackageCode,
    target: Extract<Target, { type: Type }>,
    args: readonly unknown[],
    caller: Caller,
  ) => unknown;
};

export class PackageCode {
  constructor(readonly loaded: EntryKinds) {}

  call(target: Target, args: readonly unknown[], caller: Caller): unknown {
    return CALLS[target.type](this, target as never, args, caller);
  }

  kind(name: string): AnyKind {
    const kind = this.loaded.kinds.find((one) => kindName(one) === name);
    if (kind === undefined) throw new TypeError(`the package has no kind ${name}`);
    return kind;
  }
}

function problemOf({ kind, capabilities }: AnyKind): string | undefined {
  const found = NOT_SERVED.find((name) => capabilities[name] !== undefined);
  return (
    found && `${kind}: capabilities.${found}: only built-in kinds can have it, as it acts with the operator's rights`
  );
}

const CALLS: Calls = {
  describe: ({ loaded: { kinds, problems } }): Answer<"description"> => ({
    kinds: kinds.filter((kind) => problemOf(kind) === undefined).map(described),
    problems: [...problems, ...kinds.flatMap((kind) => problemOf(kind) ?? [])],
    files: Object.keys(require.cache).filter(
      (file) => !/[/\\]node_modules[/\\]/.test(file) && !file.startsWith(KINDSTACK),
    ),
  }),

  async function(code, { kind, path }, args) {
    const answer = await functionAt(code.kind(kind), path)(...args);
    return path.at(-1) === "findDrift" ? driftData(answer as DriftReport) : answer;
  },

  async program(code, { kind }, args, { log }): Promise<Answer<"program">> {
    const [object, context, limitMs] = args as [KindObject, RunContext, number];
    const observed = observing(object);
    const run = () => runProgram(code.kind(kind), observed.object, { ...context, log });
    return { resources: await declaredInTime(run, { timeoutMs: limitMs }), looked: observed.looked };
  },

  async sdkProgram(code, { kind }, args, { log, titled }) {
    const [object, context, bytes] = args as [KindObject, RunContext, Uint8Array];
    // Loaded here: the SDK's runtime takes memory that other kinds do not need.
    const { runSdkProgram } = await import("../automation/sdk-program.js");
    const { RunRequest: Request } =
      require("@pulumi/pulumi/proto/language_pb") as typeof import("@pulumi/pulumi/proto/language_pb");
    const observed = observing(object);
    const request: RunRequest = Request.deserializeBinary(bytes);
    const run = () => runProgram(code.kind(kind), observed.object, { ...context, log });
    await runSdkProgram(async () => titled(run), request);
    return { looked: observed.looked };
  },

  async maintain(code, { kind }, args, { ask }) {
    const [object, owned, memory] = args as [KindObject, LiveObject[], Map<string, unknown>];
    const maintenance: Maintenance = {
      owned,
      memory,
      apply: async (manifest: Manifest, fieldManager: string) => void (await ask("apply", manifest, fieldManager)),
      tryOut: async (manifest: Manifest) => (await ask("tryOut", manifest)) as string | undefined,
      remove: async (live: LiveObject) => void (await ask("remove", live)),
      warn: (live, reason, message) => void ask("warn", live, reason, message).catch(() => undefined),
    };
    const result = await code.kind(kind).capabilities.maintain?.(object, maintenance);
    return { requeueAfterMs: result?.requeueAfterMs, memory };
  },

  async removeUntracked(code, { kind }, args, { context }) {
    const [owner, kept, options] = args as [Owner, Properties[], { release: boolean }];
    if (context === undefined) throw new TypeError("there is no context");
    return code.kind(kind).capabilities.external?.removeUntracked(owner, kept, options, context);
  },

  async output(code, { kind, field }, args) {
    const [outputs, object] = args as [ReadonlyMap<string, Properties>, KindObject];
    const fields = (code.kind(kind).capabilities.outputs ?? {}) as Record<string, OutputField>;
    return fields[field]?.((resource) => outputs.get(resource), object);
  },

  async provider(code, { stub, method }, args, { context }) {
    const defined = code.loaded.kinds.flatMap(({ capabilities }) => capabilities.providers ?? []);
    const provider = defined.find((one) => one.stub === stub)?.provider as unknown as Record<string, unknown>;
    const answer = Object.hasOwn(provider ?? {}, method) ? provider[method] : undefined;
    if (typeof answer !== "function") throw new TypeError(`the package has no such provider with ${method}`);
    return answer.call(provider, ...args, context);
  },
};

/** An object that notes whether a program looks at its labels or annotations. */
function observing(given: KindObject): { object: KindObject; looked: boolean } {
  const observed = { object: given, looked: false };
  observed.object = observingMetadata(given, () => {
    observed.looked = true;
  });
  return observed;
}

/** What `settings` gives is known from the start, as the environment of a process does not change. */
function described(kind: AnyKind): object {
  const { settings } = kind.capabilities;
  const data = describeValue(kind) as { capabilities: Record<string, unknown> };
  if (settings !== undefined) data.capabilities.settings = settings.call(kind.capabilities) ?? null;
  return data;
}

function functionAt(kind: AnyKind, path: FunctionPath): (...given: readonly unknown[]) => unknown {
  const owner = path
    .slice(0, -1)
    .reduce<unknown>((part, name) => (part as Record<string | number, unknown>)[name], kind);
  const found = (owner as Record<string | number, unknown>)[path.at(-1) ?? ""];
  if (typeof found !== "function") throw new TypeError(`${kind.kind} has no function ${path.join(".")}`);
  return found.bind(owner);
}

/** Errors cross as data. */
function driftData({ drifted, unknown }: DriftReport) {
  return { drifted, unknown: new Map([...unknown].map(([uid, error]) => [uid, dataOf(error)])) };
}
