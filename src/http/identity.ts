import type { PeerCertificate } from "node:tls";
import type { UserInfo } from "../../providers/kubernetes/access-review";
import { Refusal } from "./refusal";

export type Identity = UserInfo & Required<Pick<UserInfo, "username" | "groups" | "extra">>;

/** Every user that the API server knows is in it. */
const AUTHENTICATED = "system:authenticated";
const ANONYMOUS = ["system:anonymous", "system:unauthenticated"];
const CREDENTIAL_ID = "authentication.kubernetes.io/credential-id";

/**
 * The user of a client certificate, as the API server reads it: the common name is the user, the organizations are the
 * groups. `undefined` when it names no user, or more than one.
 */
export function certificateIdentity({
  subject,
  fingerprint256,
}: Pick<PeerCertificate, "subject" | "fingerprint256">): Identity | undefined {
  const { CN: username, O: groups = [] } = subject;
  if (typeof username !== "string" || username === "") return undefined;
  return known({
    username,
    groups: [groups].flat(),
    extra: { [CREDENTIAL_ID]: [`X509SHA256=${fingerprint256.replaceAll(":", "").toLowerCase()}`] },
  });
}

/** The user that a TokenReview returns; `undefined` when it returns none. */
export function reviewedIdentity(user: UserInfo): Identity | undefined {
  const { username, groups = [], extra = {} } = user;
  return username ? known({ ...user, username, groups, extra }) : undefined;
}

function known(identity: Identity): Identity | undefined {
  if ([identity.username, ...identity.groups].some((name) => ANONYMOUS.includes(name))) return undefined;
  return { ...identity, groups: [...new Set([...identity.groups, AUTHENTICATED])] };
}

/**
 * The headers that make the API server treat a request as this user's.
 *
 * @throws Refusal 403 for a name that would arrive as another one: blanks at its ends are trimmed on the way
 */
export function impersonationHeaders({ username, uid, groups, extra }: Identity): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {
    "impersonate-user": headerValue(username),
    "impersonate-group": groups.map(headerValue),
  };
  if (uid) headers["impersonate-uid"] = headerValue(uid);
  for (const [key, values] of Object.entries(extra)) {
    if (values.length > 0) headers[`impersonate-extra-${headerKey(key)}`] = values.map(headerValue);
  }
  return headers;
}

/** Header values are bytes; Node.js writes them as Latin-1, the API server reads them as UTF-8. */
function headerValue(value: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (value === "" || /^[ \t]|[ \t]$|[\x00-\x08\x0a-\x1f\x7f]/.test(value)) {
    throw new Refusal(403, "Forbidden", "your name, or that of one of your groups, cannot be passed on in a header");
  }
  return Buffer.from(value, "utf8").toString("latin1");
}

/** The API server makes keys lower-case and then decodes them, so that capitals survive only encoded. */
function headerKey(key: string): string {
  const bytes = Buffer.from(key, "utf8").toString("latin1");
  return bytes.replace(/[^a-z0-9._-]/g, (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, "0")}`);
}
