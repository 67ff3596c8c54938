import fs from "node:fs";
import path from "node:path";

/**
 * Tells of every file of a directory's whole tree that is made, replaced or removed, once each and when it happens; of
 * what is written into a file that is there nothing is told. (`fs.watch` with `recursive` tells of some twice, and of
 * others not at all.) A file that is put into a new directory before that is known is told of when it is found there.
 */
export class StateWatch {
  readonly #watchers = new Map<string, fs.FSWatcher>();
  readonly #tell: (file: string) => void;

  constructor(directory: string, tell: (file: string) => void) {
    this.#tell = tell;
    this.#watch(directory);
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #watch(directory: string): void {
    this.#watchers.get(directory)?.close(); // made again under the same name: it watches one that is gone
    this.#watchers.delete(directory);
    try {
      const watcher = fs.watch(directory, (event, name) => {
        if (event === "rename" && name !== null) this.#changed(path.join(directory, name));
      });
      watcher.on("error", () => watcher.close());
      this.#watchers.set(directory, watcher);
      for (const name of fs.readdirSync(directory)) this.#changed(path.join(directory, name));
    } catch {
      // it is gone already
    }
  }

  #changed(file: string): void {
    const found = fs.statSync(file, { throwIfNoEntry: false });
    if (found?.isDirectory()) this.#watch(file);
    else this.#tell(file);
  }
}
