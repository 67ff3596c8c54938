import { join, relative } from "node:path";
import { MAX_BYTES, type Manifests, selectFiles } from "../../stacks/contract/manifests";
import { parseManifests, type SourcedDocument } from "../../stacks/contract/parse-manifests";
import { commonAncestor, filesAt, git, pathInRepository } from "./git";

/** What files were at another revision. */
export interface EarlierManifests extends Manifests {
  /** Why deletions may be unseen; empty when all that was there is known. */
  unseen: readonly string[];
}

/**
 * The manifests of files and directories at the merge base of another revision and HEAD.
 *
 * @throws Error when there is no such revision, or no repository
 */
export async function readManifestsAt(revision: string, paths: readonly string[]): Promise<EarlierManifests> {
  const objects: SourcedDocument[] = [];
  const unseen: string[] = [];
  for (const path of paths) {
    const { folder, inside } = await pathInRepository(path);
    const commit = await commonAncestor(folder, revision);
    const files = await filesAt(commit, inside);
    if (files.length === 0) unseen.push(`${path} is not in ${revision}, so nothing of it can be seen as deleted`);
    const isFile = files.length === 1 && files[0]?.path === inside;
    const names = files.map((file) => relative(inside, file.path));
    const { files: selected, templates } = selectFiles(names, path);
    const chosen = new Set(selected);
    for (const file of files) {
      const within = relative(inside, file.path);
      if (!isFile && !chosen.has(within)) continue;
      const name = isFile ? path : join(path, within);
      if (file.bytes > MAX_BYTES) {
        unseen.push(`${name} at ${revision} has more than ${MAX_BYTES} bytes`);
        continue;
      }
      const text = await git(commit.root, ["cat-file", "blob", file.blob]);
      const parsed = parseManifests(text, name, { strict: false });
      objects.push(...parsed.objects);
      if (templates.has(within)) continue;
      unseen.push(...parsed.problems.map(({ message }) => `${name} at ${revision}: ${message}`));
    }
  }
  return { objects, problems: [], unseen };
}
