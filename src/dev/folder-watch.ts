import fs from "node:fs";
import path from "node:path";

/** How often a folder that is gone is looked for. */
const LOOK_MS = 200;

/** Watches folders, not files: editors replace files. A folder that is deleted and made again, as by a checkout, is watched again. */
export class FolderWatch {
  readonly #watchers = new Map<string, fs.FSWatcher>();
  #closed = false;

  /** @param onChange gets the file's name; `null` when any file may have changed */
  constructor(
    private readonly onChange: (file: string | null) => void,
    private readonly onError: (error: unknown, folder: string) => void,
  ) {}

  get folders(): string[] {
    return [...this.#watchers.keys()];
  }

  /** Watches a folder; one that does not exist is left alone. */
  watch(folder: string): void {
    if (this.#watchers.has(folder) || !fs.existsSync(folder)) return;
    try {
      const watcher = fs.watch(folder, (event, name) => {
        // So the system tells that the folder itself was deleted or moved.
        if (event === "rename" && name === path.basename(folder)) this.#watchAgain(folder);
        else this.onChange(name);
      });
      watcher.on("error", (error) => this.onError(error, folder));
      this.#watchers.set(folder, watcher);
    } catch (error) {
      this.onError(error, folder);
    }
  }

  close(): void {
    this.#closed = true;
    for (const watcher of this.#watchers.values()) watcher.close();
  }

  #watchAgain(folder: string): void {
    if (this.#closed) return;
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
    this.watch(folder);
    if (this.#watchers.has(folder)) this.onChange(null);
    else setTimeout(() => this.#watchAgain(folder), LOOK_MS).unref();
  }
}
