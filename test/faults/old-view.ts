import type { List } from "./api-proxy";
import type { useFaultOperator } from "./fault-operator";

/** What the operator's lists were at some time, to be shown to it later, when nothing else is. */
export class OldView {
  readonly #faulty: ReturnType<typeof useFaultOperator>;
  readonly #lists = new Map<string, List | undefined>();

  constructor(faulty: ReturnType<typeof useFaultOperator>) {
    this.#faulty = faulty;
  }

  /** Starts the operator again and learns what its caches list. What it asks for later, it has to see as it is. */
  async learn(): Promise<void> {
    await this.#faulty.operator.stop();
    this.#faulty.api.faults.list = (list, { url }) => {
      this.#lists.set(url.pathname + url.search, undefined);
      return list;
    };
    await this.#faulty.start();
    this.#faulty.api.faults = {};
  }

  async record(): Promise<void> {
    for (const path of this.#lists.keys()) {
      this.#lists.set(path, (await (await fetch(this.#faulty.api.url + path)).json()) as List);
    }
  }

  /** @param isOld whether it is behind in this collection, such as `/api/v1/pods`; in all, if not given */
  show(isOld = (_collection: string) => true): void {
    this.#faulty.api.faults.list = (list, { url }) =>
      (isOld(url.pathname) ? this.#lists.get(url.pathname + url.search) : undefined) ?? list;
    this.#faulty.api.faults.silent = ({ url }) => isOld(url.pathname);
  }
}
