import { resolve, sep } from "node:path";
import type { RunRequest } from "@pulumi/pulumi/proto/language_pb";
import { dataOf } from "../../providers/error-data";
import type { LiveObject, Manifest } from "../../providers/kubernetes/client";
import type { Owner } from "../../providers/kubernetes/ownership";
import type { Log } from "../../providers/log";
import type { Properties, ProviderContext } from "../../providers/provider";
import type { DeclaredResource } from "../../providers/registration";
import type { DriftReport, Maintenance } from "../../stacks/contract/capabilities";
import type { AnyKind, OutputField } from "../../stacks/contract/kind";
import type { KindObject } from "../../stacks/contract/object";
import { observingMetadata } from "../../stacks/contract/references";
import type { RunContext } from "../../stacks/contract/run-context";
import { runProgram } from "../../stacks/contract/run-program";
import { declaredInTime } from "../automation/declared";
import { describeValue } from "./description";
import type { FunctionPath, Target } from "./messages";

/** What a call has at hand besides its arguments. */
export interface Caller {
  log: Log;
  signal: AbortSignal;
  /** Of calls that are part of an update. */
  context: ProviderContext | undefined;
  /** Asks the operator. */
  ask(method: string, ...given: unknown[]): Promise<unknown>;
}

/** The answer to `program`. */
export interface DeclaredProgram {
  resources: DeclaredResource[];
  /** Whether the program has looked at labels or annotations of its object. */
  looked: boolean;
}

/** The answer to `describe`. */
export interface PackageDescription {
  kinds: unknown[];
  problems: string[];
  /** Those that were loaded, without what lies in `node_modules` and Kindstack's own. */
  files: string[];
}

/** Kindstack's compiled code. */
const KINDSTACK = resolve(__dirname, "../..") + sep;

/** Capabilities that are called with what only the operator's own process has. */
const NOT_SERVED = ["admission", "namespaceView"] as const;

type Call = (code: PackageCode, target: Target, args: readonly unknown[], caller: Caller) => unknown;

/** The code of a package's kinds, in the process of the package. */
export class PackageCode {
  readonly kinds: readonly AnyKind[];
  readonly problems: readonly string[];

  constructor({ kinds, problems }: { kinds: readonly AnyKind[]; problems: readonly string[] }) {
    const refused = kinds.flatMap((kind) => problemOf(kind) ?? []);
    this.kinds = kinds;
    this.problems = [...problems, ...refused];
  }

  call(target: Target, args: readonly unknown[], caller: Caller): unknown {
    return CALLS[target.type](this, target, args, caller);
  }

  kind(index: number): AnyKind {
    const kind = this.kinds[index];
    if (kind === undefined) throw new TypeError(`the package has no kind ${index}`);
    return kind;
  }
}

function problemOf({ kind, capabilities }: AnyKind): string | undefined {
  const found = NOT_SERVED.find((name) => capabilities[name] !== undefined);
  return found && `${kind}: capabilities.${found}: only kinds that are built in can have it`;
}

const CALLS: { [Type in Target["type"]]: Call } = {
  describe: ({ kinds, problems }): PackageDescription => ({
    kinds: kinds.map((kind) => (problemOf(kind) === undefined ? described(kind) : null)),
    problems: [...problems],
    files: Object.keys(require.cache).filter(
      (file) => !/[/\\]node_modules[/\\]/.test(file) && !file.startsWith(KINDSTACK),
    ),
  }),

  async function(code, target, args) {
    const { kind, path } = target as Extract<Target, { type: "function" }>;
    const answer = await functionAt(code.kind(kind), path)(...args);
    return path.at(-1) === "findDrift" ? driftData(answer as DriftReport) : answer;
  },

  async program(code, target, args, { log }): Promise<DeclaredProgram> {
    const { kind } = target as Extract<Target, { type: "program" }>;
    const [object, context, limitMs] = args as [KindObject, RunContext, number];
    let looked = false;
    const observed = observingMetadata(object, () => {
      looked = true;
    });
    const run = () => runProgram(code.kind(kind), observed, { ...context, log });
    return { resources: await declaredInTime(run, limitMs), looked };
  },

  async sdkProgram(code, target, args, { log }) {
    const { kind } = target as Extract<Target, { type: "sdkProgram" }>;
    const [object, context, bytes] = args as [KindObject, RunContext, Uint8Array];
    // Loaded here: the SDK's runtime takes memory that other kinds do not need.
    const { runSdkProgram } = await import("../automation/sdk-program.js");
    const { RunRequest: Request } =
      require("@pulumi/pulumi/proto/language_pb") as typeof import("@pulumi/pulumi/proto/language_pb");
    let looked = false;
    const observed = observingMetadata(object, () => {
      looked = true;
    });
    const request: RunRequest = Request.deserializeBinary(bytes);
    await runSdkProgram(async () => runProgram(code.kind(kind), observed, { ...context, log }), request);
    return { looked };
  },

  async maintain(code, target, args, { ask }) {
    const { kind } = target as Extract<Target, { type: "maintain" }>;
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

  async removeOrphans(code, target, args, { context }) {
    const { kind } = target as Extract<Target, { type: "removeOrphans" }>;
    const [owner, kept, options] = args as [Owner, Properties[], { release: boolean }];
    if (context === undefined) throw new TypeError("there is no context");
    await code.kind(kind).capabilities.external?.removeOrphans(owner, kept, options, context);
  },

  async output(code, target, args) {
    const { kind, field } = target as Extract<Target, { type: "output" }>;
    const [outputs, object] = args as [ReadonlyMap<string, Properties>, KindObject];
    const fields = (code.kind(kind).capabilities.outputs ?? {}) as Record<string, OutputField>;
    return fields[field]?.((resource) => outputs.get(resource), object);
  },

  async provider(code, target, args, { context }) {
    const { stub, method } = target as Extract<Target, { type: "provider" }>;
    const defined = code.kinds.flatMap(({ capabilities }) => capabilities.providers ?? []);
    const provider = defined.find((one) => one.stub === stub)?.provider as unknown as Record<string, unknown>;
    const answer = Object.hasOwn(provider ?? {}, method) ? provider[method] : undefined;
    if (typeof answer !== "function") throw new TypeError(`the package has no such provider with ${method}`);
    return answer.call(provider, ...args, context);
  },
};

/** What `settings` gives is known from the start, as the environment of a process does not change. */
function described(kind: AnyKind): unknown {
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
