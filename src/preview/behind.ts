import { selectFiles } from "../../stacks/contract/manifests";
import { commitOf, commonAncestor, lackingFrom, pathInRepository } from "./git";

const SHOWN = 10;

/**
 * The changes of another revision in these paths that HEAD lacks. A merge includes them, so a preview without them differs from
 * the merge.
 *
 * @param all whether every file counts, or manifests alone
 * @throws Error as {@link commonAncestor}
 */
export async function behindOf(
  revision: string,
  paths: readonly string[],
  { all }: { all: boolean },
): Promise<string[]> {
  const places = await Promise.all(
    paths.map(async (path) => {
      const { folder, inside } = await pathInRepository(path);
      return { base: await commonAncestor(folder, revision), inside };
    }),
  );
  const repositories = Map.groupBy(places, ({ base }) => base.root);
  const lacks = [...repositories.values()].map(async (places) => {
    const { base } = places[0] as (typeof places)[0];
    const insides = places.map(({ inside }) => inside);
    const { commits, files } = await lackingFrom(base, await commitOf(base.root, revision), insides);
    const manifests = new Set(selectFiles(files, "").files);
    const counted = files.filter((file) => all || manifests.has(file) || insides.includes(file));
    if (commits === 0 || counted.length === 0) return [];
    const more = counted.length > SHOWN ? ` and ${counted.length - SHOWN} more` : "";
    const which = `${counted.slice(0, SHOWN).join(", ")}${more}`;
    const what = commits === 1 ? "1 commit" : `${commits} commits`;
    return [`HEAD lacks ${what} of ${revision} that ${commits === 1 ? "changes" : "change"} these paths: ${which}`];
  });
  return (await Promise.all(lacks)).flat();
}
