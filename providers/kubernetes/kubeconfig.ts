import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { KubeConfig, type User } from "@kubernetes/client-node";
import { parse } from "yaml";
import { TerminalError } from "../errors";

/** Whom a kubeconfig's user acts as, besides `as`, which the library reads itself. */
interface Impersonation {
  uid?: string;
  groups: readonly string[];
  extra: Readonly<Record<string, readonly string[]>>;
}

interface ImpersonatingUser extends User {
  impersonation?: Impersonation;
}

interface FileUser {
  name?: string;
  user?: {
    "as-uid"?: string;
    "as-groups"?: string[] | null;
    "as-user-extra"?: Record<string, string[] | null> | null;
  } | null;
}

/**
 * The kubeconfig of a file or a text, by default the one that `KUBECONFIG` or `~/.kube/config` names, or in a Pod its service
 * account.
 *
 * @throws TerminalError `Misconfigured` as {@link impersonationHeaders}; Error when it cannot be read
 */
export function loadKubeconfig(source?: string): KubeConfig {
  const config = new KubeConfig();
  if (source === undefined) config.loadFromDefault();
  else if (existsSync(source)) config.loadFromFile(source);
  else config.loadFromString(source);
  const sources = source === undefined ? defaultFiles() : [source];
  const texts = sources.map((one) => (existsSync(one) ? readFileSync(one, "utf8") : one));
  const users = texts.flatMap(
    (text) => (parse(text, { prettyErrors: false }) as { users?: FileUser[] } | undefined)?.users ?? [],
  );
  for (const user of config.users ?? []) {
    const found = users.find(({ name }) => name === user.name)?.user;
    if (!found) continue;
    const { "as-uid": uid, "as-groups": groups, "as-user-extra": extra } = found;
    const values = Object.entries(extra ?? {}).map(([key, value]) => [key, value ?? []] as const);
    const impersonation = { ...(uid && { uid }), groups: groups ?? [], extra: Object.fromEntries(values) };
    Object.assign(user, { impersonation } satisfies Partial<ImpersonatingUser>);
  }
  impersonationHeaders(config.getCurrentUser());
  return config;
}

/**
 * The headers that make the API server take a request for one of whom the user acts as.
 *
 * @throws TerminalError `Misconfigured` for groups or the like without a user: without one the API server would take the
 *   request for the user's own
 */
export function impersonationHeaders(user: User | null): Record<string, string | string[]> {
  const { impersonateUser, impersonation } = (user ?? {}) as Partial<ImpersonatingUser>;
  const { uid, groups = [], extra = {} } = impersonation ?? {};
  const values = Object.entries(extra).filter(([, list]) => list.length > 0);
  if (!impersonateUser) {
    if (uid === undefined && groups.length === 0 && values.length === 0) return {};
    throw new TerminalError(
      "Misconfigured",
      `the kubeconfig's user ${user?.name} has as-uid, as-groups or as-user-extra without \`as\`: name the user to act as`,
    );
  }
  return {
    "Impersonate-User": impersonateUser,
    ...(uid !== undefined && { "Impersonate-Uid": uid }),
    ...(groups.length > 0 && { "Impersonate-Group": [...groups] }),
    ...Object.fromEntries(values.map(([key, list]) => [`Impersonate-Extra-${headerKey(key)}`, [...list]])),
  };
}

/** The characters that a header's name may have stay; others are percent-encoded, as client-go does. */
function headerKey(key: string): string {
  return key.replace(/[^!#$&'*+.^_`|~0-9A-Za-z-]/gu, (character) =>
    Array.from(Buffer.from(character), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""),
  );
}

function defaultFiles(): string[] {
  const named = (process.env.KUBECONFIG ?? "").split(delimiter).filter((file) => file !== "");
  const files = named.length > 0 ? named : [join(process.env.HOME ?? homedir(), ".kube", "config")];
  return files.filter((file) => existsSync(file));
}
