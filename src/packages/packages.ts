import { definitionProblem } from "../../stacks/contract/definition";
import { programDigest } from "../../stacks/contract/digest";
import type { AnyKind } from "../../stacks/contract/kind";
import { type EntryKinds, type LoadedKinds, loadKindsWith } from "../../stacks/kinds/catalog";
import { type Answer, answers, parseAnswer } from "./answers";
import { PackageProcess } from "./process";
import { remoteKind } from "./remote-kind";
import type { RunnerOptions } from "./runner";
import { packageEnvironment } from "./sandbox";

interface PackagesOptions extends Pick<RunnerOptions, "limits" | "idleMs" | "logger"> {
  /** The operator's. */
  environment: NodeJS.ProcessEnv;
}

type Description = Answer<"description">;

/** How long the modules of a package may take to load. */
const LOAD_MS = 60_000;

/** The kinds of packages, each package with a process of its own; and built-in kinds, which need none. */
export class Packages {
  /** Each with its kinds that are served, and the digests of their code. */
  readonly #processes = new Map<PackageProcess, Map<AnyKind, string>>();

  constructor(private readonly options: PackagesOptions) {}

  /** @see loadKinds @throws RangeError */
  async load(words: readonly string[] | undefined): Promise<LoadedKinds> {
    const files = new Set<string>();
    const loaded = await loadKindsWith((entry, name) => this.#load(entry, name, files), words);
    return { ...loaded, files: [...files] };
  }

  /** Providers of packages may write for so long from now, see {@link StackEngine.allow}. */
  allow(ms: number): void {
    for (const process of this.#processes.keys()) process.allow(ms);
  }

  get pids(): number[] {
    return [...this.#processes.keys()].flatMap(({ pids }) => pids);
  }

  /** Only these kinds are served from now on. What was loaded besides them ends when it has nothing to do. */
  keep(kinds: readonly AnyKind[]): void {
    for (const digests of this.#processes.values()) {
      for (const kind of digests.keys()) if (!kinds.includes(kind)) digests.delete(kind);
    }
  }

  close(): void {
    for (const process of this.#processes.keys()) process.close();
  }

  async #load(entry: string, name: string, files: Set<string>): Promise<EntryKinds> {
    const bare = packageEnvironment([], this.options.environment);
    let process = this.#processOf(entry, name, bare);
    let description = await this.#describe(process, name);
    let served = this.#served(process, description);
    const environment = packageEnvironment(served.kinds, this.options.environment);
    if (Object.keys(environment).length > Object.keys(bare).length) {
      process.close();
      process = this.#processOf(entry, name, environment); // begins with its first call
      const hasSettings = served.kinds.some(({ capabilities }) => capabilities.settings !== undefined);
      if (hasSettings) description = await this.#describe(process, name); // they may read it
      served = this.#served(process, description);
    }
    this.#processes.set(process, new Map(served.kinds.map((kind) => [kind, programDigest(kind)])));
    for (const file of [entry, ...description.files]) files.add(file);
    return served;
  }

  #processOf(entry: string, name: string, environment: NodeJS.ProcessEnv): PackageProcess {
    const isChanged = () =>
      [...(this.#processes.get(process) ?? [])].some(([kind, digest]) => hasChanged(kind, digest));
    const process: PackageProcess = new PackageProcess({ ...this.options, name, entry, environment, isChanged });
    return process;
  }

  async #describe(process: PackageProcess, name: string): Promise<Description> {
    try {
      const what = `the package ${name}`;
      const answer = await process.call({ type: "describe" }, [], { what, limitMs: LOAD_MS, isPure: false });
      return parseAnswer(answers.description, answer, what);
    } catch (error) {
      process.close();
      throw error;
    }
  }

  #served(process: PackageProcess, { kinds: descriptions, problems }: Description): EntryKinds {
    const { timeoutMs } = this.options.limits;
    const found = descriptions.map((description) => remoteKind(description, process, timeoutMs));
    const wrong = found.map((kind) => [kind, definitionProblem(kind)] as const);
    return {
      kinds: wrong.flatMap(([kind, problem]) => (problem === undefined ? [kind] : [])),
      problems: [...problems, ...wrong.flatMap(([, problem]) => problem ?? [])],
    };
  }
}

/** Also where its files cannot be read, as while a package manager installs them again: a process could not load these. */
function hasChanged(kind: AnyKind, digest: string): boolean {
  try {
    return programDigest(kind) !== digest;
  } catch {
    return true;
  }
}
