import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";

/** Works with a new folder in `parent`, which is removed afterwards. */
export async function withScratch<T>(
  parent: string,
  name: string,
  work: (directory: string) => Promise<T>,
): Promise<T> {
  const directory = await mkdtemp(join(parent, `${name}-`));
  try {
    return await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
