import { MESSAGES } from "./messages";

/** A refusal of the API server: its HTTP status, its words, and the path of the request. */
interface Refusal {
  status: number;
  message: string;
  path: string;
}

/** Refusals that time heals, by what only the API server's words tell. */
interface Healing {
  words: RegExp;
  /** What has to be there, or over, before the request is granted; by the groups of `words`. */
  dependency(groups: Record<string, string>, refusal: Refusal): string;
}

/**
 * Each is tested against the API server's own words (`refusals.integration.test.ts`). Other refusals by admission do not
 * heal: what the server understood and refused stays refused until the request changes.
 */
const HEALING: readonly Healing[] = [
  {
    words: MESSAGES.noServiceAccount,
    dependency: ({ account }) => `service account ${account}`,
  },
  {
    words: MESSAGES.terminating,
    dependency: ({ namespace }) => `namespace ${namespace}`,
  },
  {
    words: MESSAGES.quota,
    dependency: ({ quota }, { path }) => `quota ${namespaceIn(path)}/${quota}`,
  },
  {
    // Granted without a change of the object.
    words: MESSAGES.noRight,
    dependency: ({ right }) => `right to ${right}`,
  },
  {
    words: MESSAGES.escalation,
    dependency: (_, { path }) => `rights that ${path} grants`,
  },
  {
    words: MESSAGES.webhookFailed,
    dependency: ({ webhook }) => `webhook ${webhook}`,
  },
  {
    words: MESSAGES.noPriorityClass,
    dependency: ({ name }) => `PriorityClass ${name}`,
  },
  {
    words: MESSAGES.noRuntimeClass,
    dependency: ({ name }) => `RuntimeClass ${name}`,
  },
  {
    words: MESSAGES.notFound,
    dependency: ({ resource, name }, { path }) => `${resource} ${namespaceIn(path)}/${name}`,
  },
  {
    words: MESSAGES.starting,
    dependency: () => "API server",
  },
];

/** Statuses of a server that cannot answer now: 0 without any answer. */
const AWAY = [0, 503];

/**
 * The dependency that a refused request lacks: all requests with the same dependency are granted or refused alike, so one is
 * tried for all of them. `undefined` for a refusal of this request alone.
 */
export function healingDependency(refusal: Refusal): string | undefined {
  for (const { words, dependency } of HEALING) {
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
