import type { LiveObject } from "../../providers/kubernetes/client";
import { objectKey } from "../../stacks/contract/object";
import { type Declarations, type Declared, type Fleet, resourcesOf } from "../fleet/artefact";
import { idOf } from "../plan/effects";
import { MAX_REQUEST_BYTES, MAX_REQUEST_OBJECTS, MAX_REQUEST_RESOURCES, type Requests } from "../preview/api";
import { newReport, type Report } from "../preview/report";

type Request = Requests["/v1/fleet"];

/** What a request has besides its objects. */
const ENVELOPE_BYTES = 256 * 1024;

/**
 * Declarations for all objects that were fetched: who runs programs may leave some out, of which nothing is known then.
 */
export function completed({ kinds }: Fleet, declarations: Declarations): Declarations {
  const said = new Set(declarations.objects.map(identityOf));
  const missing = kinds.flatMap(({ kind, objects }) =>
    (objects as LiveObject[]).flatMap(({ metadata: { name, namespace, uid, generation = 0 } }): Declared[] => {
      const object = { kind, name, ...(namespace && { namespace }), uid, generation };
      const outcome = { type: "unchecked", message: "its program was not run" } as const;
      return said.has(identityOf(object)) ? [] : [{ ...object, outcome }];
    }),
  );
  return { ...declarations, objects: [...declarations.objects, ...missing] };
}

function identityOf({ kind, namespace, name, uid }: Omit<Declared, "outcome">): string {
  return JSON.stringify([kind, namespace, name, uid]);
}

/** The requests by which an operator is asked about declarations: as many of them as its limits demand. */
export function requestsOf(
  { objects, providers, notFetched }: Declarations,
  options: Pick<Request, "refresh" | "propose">,
): Request[] {
  const pages: Declared[][] = [[]];
  let [bytes, resources] = [0, 0];
  for (const object of objects.map(withinLimits)) {
    const page = pages.at(-1) as Declared[];
    bytes += sizeOf(object);
    resources += resourcesOf(object);
    const fits = bytes <= MAX_REQUEST_BYTES - ENVELOPE_BYTES && resources <= MAX_REQUEST_RESOURCES;
    if (fits && page.length < MAX_REQUEST_OBJECTS) page.push(object);
    else {
      pages.push([object]);
      [bytes, resources] = [sizeOf(object), resourcesOf(object)];
    }
  }
  return pages.map((page, index) => ({
    ...options,
    objects: page,
    providers,
    notFetched: index === 0 ? notFetched : [],
  }));
}

function withinLimits(object: Declared): Declared {
  if (sizeOf(object) <= MAX_REQUEST_BYTES - ENVELOPE_BYTES) return object;
  return { ...object, outcome: { type: "unchecked", message: "its declarations are larger than a request may be" } };
}

function sizeOf(value: object): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1;
}

/** One report of those on its pages, which do not know of each other. */
export function joined(
  pages: readonly Report[],
  { at, notes, unchecked }: Pick<Fleet, "at" | "notes" | "unchecked">,
  { objects }: Pick<Declarations, "objects">,
): Report {
  const rivals = pages.length > 1 ? rivalsAmong(objects) : [];
  return {
    ...newReport(pages.flatMap((page) => page.objects)),
    problems: pages.flatMap(({ problems }) => problems),
    notes: unique([
      `objects that were created after ${at} are not in this report`,
      ...notes,
      ...pages.flatMap((page) => page.notes),
    ]),
    unchecked: unique([...unchecked, ...pages.flatMap((page) => page.unchecked), ...rivals]),
  };
}

/** What several objects declare, of which only one can have it. */
function rivalsAmong(objects: readonly Declared[]): string[] {
  const holders = new Map<string, string[]>();
  for (const { kind, outcome, ...metadata } of objects) {
    for (const { inputs } of outcome.type === "declared" ? outcome.resources : []) {
      const id = idOf(inputs?.manifest);
      if (id !== undefined) holders.set(id, [...(holders.get(id) ?? []), `${kind} ${objectKey(metadata)}`]);
    }
  }
  const rivals = [...holders].filter(([, owners]) => new Set(owners).size > 1);
  return rivals.map(([id, owners]) => `${id} is declared by ${owners.join(" and ")}: only one of them can have it`);
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}
