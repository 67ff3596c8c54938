import { MESSAGES } from "./messages";

interface Refusal {
  status: number;
  message: string;
  path: string;
}

/** What has to be there, or over, before a request is granted; by the groups of the words of its refusal. */
type Dependency = (groups: Record<string, string>, refusal: Refusal) => string;

/**
 * Refusals that time heals, by what only the API server's words tell; each is tested against these
 * (`refusals.integration.test.ts`). Other refusals by admission do not heal: what the server understood and refused stays refused
 * until the request changes.
 */
const HEALING: readonly [words: RegExp, Dependency][] = [
  [MESSAGES.noServiceAccount, ({ account }) => `service account ${account}`],
  [MESSAGES.terminating, ({ namespace }) => `namespace ${namespace}`],
  [MESSAGES.quota, ({ quota }, { path }) => `quota ${namespaceIn(path)}/${quota}`],
  [MESSAGES.noRight, ({ right }) => `right to ${right}`], // granted without a change of the object
  [MESSAGES.escalation, (_, { path }) => `rights that ${path} grants`],
  [MESSAGES.webhookFailed, ({ webhook }) => `webhook ${webhook}`],
  [MESSAGES.noPriorityClass, ({ name }) => `PriorityClass ${name}`],
  [MESSAGES.noRuntimeClass, ({ name }) => `RuntimeClass ${name}`],
  [MESSAGES.notFound, ({ resource, name }, { path }) => `${resource} ${namespaceIn(path)}/${name}`],
  [MESSAGES.starting, () => "API server"],
];

/** Statuses of a server that cannot answer now: 0 without any answer. */
const AWAY = [0, 503];

/**
 * The dependency that a refused request lacks: all requests with the same dependency are granted or refused alike, so one is
 * tried for all of them. `undefined` for a refusal of this request alone.
 */
export function healingDependency(refusal: Refusal): string | undefined {
  for (const [words, dependency] of HEALING) {
    const match = words.exec(refusal.message);
    if (match !== null) return dependency(match.groups ?? {}, refusal);
  }
  return AWAY.includes(refusal.status) ? awayDependency(refusal.path) : undefined;
}

/** Another server answers for an aggregated API. */
function awayDependency(path: string): string {
  const [, group] = /^\/apis\/([^/]+)\//.exec(path) ?? [];
  return group === undefined ? "API server" : `API server for ${group}`;
}

function namespaceIn(path: string): string {
  return decodeURIComponent(/\/namespaces\/([^/]+)\//.exec(path)?.[1] ?? "");
}
