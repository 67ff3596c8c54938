import { definitionProblem } from "../../stacks/contract/definition";
import type { AnyKind } from "../../stacks/contract/kind";
import { type EntryKinds, type LoadedKinds, loadKindsWith } from "../../stacks/kinds/catalog";
import { answers, parseAnswer } from "./answers";
import { PackageProcess } from "./process";
import { remoteKind } from "./remote-kind";
import type { RunnerOptions } from "./runner";
import { packageEnvironment } from "./sandbox";

export interface PackagesOptions extends Pick<RunnerOptions, "limits" | "idleMs" | "logger"> {
  /** The operator's. */
  environment: NodeJS.ProcessEnv;
}

/** How long the modules of a package may take to load. */
const LOAD_MS = 60_000;

/** The kinds of packages, each package with a process of its own; and built-in kinds, which need none. */
export class Packages {
  readonly #processes = new Set<PackageProcess>();

  constructor(private readonly options: PackagesOptions) {}

  /** @see loadKinds @throws RangeError */
  async load(words: readonly string[] | undefined): Promise<LoadedKinds> {
    const files = new Set<string>();
    const loaded = await loadKindsWith((entry, name) => this.#load(entry, name, files), words);
    return { ...loaded, files: [...files] };
  }

  /** Providers of packages may write for so long from now, see {@link StackEngine.allow}. */
  allow(ms: number): void {
    for (const process of this.#processes) process.allow(ms);
  }

  /** Of the running processes. */
  get pids(): number[] {
    return [...this.#processes].flatMap(({ pids }) => pids);
  }

  close(): void {
    for (const process of this.#processes) process.close();
  }

  async #load(entry: string, name: string, files: Set<string>): Promise<EntryKinds> {
    const undeclared = await this.#describe(entry, name, packageEnvironment([], this.options.environment));
    const environment = packageEnvironment(undeclared.kinds, this.options.environment);
    const isSame = Object.keys(environment).length === Object.keys(undeclared.environment).length;
    // What a kind declares of the environment, its `settings` may read.
    const { process, kinds, ...described } = isSame
      ? undeclared
      : await this.#again(undeclared.process, entry, name, environment);
    this.#processes.add(process);
    for (const file of [entry, ...described.files]) files.add(file);
    return { kinds, problems: described.problems };
  }

  async #again(former: PackageProcess, entry: string, name: string, environment: NodeJS.ProcessEnv) {
    former.close();
    return this.#describe(entry, name, environment);
  }

  async #describe(entry: string, name: string, environment: NodeJS.ProcessEnv) {
    const { limits } = this.options;
    const process = new PackageProcess({ ...this.options, name, entry, environment });
    try {
      const what = `the package ${name}`;
      const answer = await process.call({ type: "describe" }, [], { what, limitMs: LOAD_MS, isPure: false });
      const { kinds: descriptions, problems, files } = parseAnswer(answers.description, answer, what);
      const found = descriptions.flatMap((description, index) => {
        if (description === null) return [];
        const { timeoutMs } = limits;
        return [remoteKind(description, { process, index, timeoutMs })];
      });
      const wrong = found.map((kind) => [kind, definitionProblem(kind)] as const);
      const kinds: AnyKind[] = wrong.flatMap(([kind, problem]) => (problem === undefined ? [kind] : []));
      const all = [...problems, ...wrong.flatMap(([, problem]) => problem ?? [])];
      return { process, environment, kinds, problems: all, files };
    } catch (error) {
      process.close();
      throw error;
    }
  }
}
