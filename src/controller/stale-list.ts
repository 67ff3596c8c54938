import pLimit from "p-limit";
import { RetryableError } from "../../providers/errors";
import { type KubernetesClient, known, type LiveObject } from "../../providers/kubernetes/client";
import { objectId, objectKey, parseObjectId } from "../../stacks/contract/object";

/** Requests for single objects that a list lacks, at the same time. */
const REQUESTS_AT_ONCE = 16;

/** Of these ids, the objects that exist, though a list of their type lacks them. */
export async function findUnlisted(
  client: Pick<KubernetesClient, "find">,
  listed: readonly LiveObject[],
  ids: readonly string[],
): Promise<LiveObject[]> {
  const seen = new Set(listed.map(objectId));
  const limit = pLimit(REQUESTS_AT_ONCE);
  const unlisted = ids.filter((id) => !seen.has(id)).map(parseObjectId);
  const found = await Promise.all(
    unlisted.map(({ apiVersion, kind, ...metadata }) =>
      limit(() => known(client.find({ apiVersion, kind, metadata }))),
    ),
  );
  return found.filter((object) => object !== undefined);
}

/** @throws RetryableError `StaleList` when a list lacked an object that exists: what a program does not see it deletes */
export function refuseStale(unlisted: readonly LiveObject[]): void {
  const [object] = unlisted;
  if (object === undefined) return;
  const name = `${object.kind} ${objectKey(object.metadata)}`;
  const message = `the API server's list of ${object.kind} objects lacks ${name}, which exists: the list is outdated, retrying`;
  throw new RetryableError("StaleList", message);
}
