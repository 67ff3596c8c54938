/*
 * Errors quote URLs of states and of databases, as they were written or as a library reads them; messages end up in
 * conditions, Events and logs, which many people may read.
 */

/** `//user:password@`, to the last `@` of a word: a password that is not encoded may have any of `:/@`. */
const USER_INFO = /(\/\/[^\s:/@]{0,256}):\S{0,256}@/g;
/** `password=…` of a URL's query or of a DSN, in quotes or not. */
const PARAMETER =
  /(?<![A-Za-z0-9])([\w.-]{0,40}(?:pass(?:word|wd|phrase)?|pwd|token|secret|signature|sig|account_?key|access_?key|credentials?)\s?=\s?)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^&\s;"]+)/gi;
/** Parameters of backends' URLs whose values may be shown. */
const HARMLESS = new Set([
  "application_name",
  "awssdk",
  "connect_timeout",
  "database",
  "dbname",
  "domain",
  "endpoint",
  "host",
  "port",
  "profile",
  "protocol",
  "region",
  "sslmode",
  "storage_account",
  "table",
  "user",
]);
const ORDINARY = /^(true|false|yes|no|none|\d+\w?)$/i;
/** Shorter ones are in many words. */
const SHORTEST = 4;

let known: { url: string; secrets: readonly string[] } | undefined;

/** A message without the passwords in URLs and DSNs, and without those of the state's backend in any spelling. */
export function withoutPasswords(text: string): string {
  const url = process.env.PULUMI_BACKEND_URL ?? "";
  if (known?.url !== url) known = { url, secrets: secretsIn(url) };
  const shown = known.secrets.reduce((result, secret) => result.replaceAll(secret, "***"), text);
  return shown.replace(USER_INFO, "$1:***@").replace(PARAMETER, "$1***");
}

/** Whether a URL or DSN holds a password, and so must not stand where everybody may read it. */
export function hasPassword(url: string): boolean {
  return [...url.matchAll(USER_INFO), ...url.matchAll(PARAMETER)].length > 0;
}

/** The passwords of a URL or DSN, each as it is written, as it is meant, and as others may write it. */
function secretsIn(url: string): string[] {
  const written = [
    ...[...url.matchAll(/\/\/[^\s:/@]{0,256}:(\S{0,256})@/g)].map(([, password]) => password),
    ...[...url.matchAll(PARAMETER)].map(([, , value]) => value?.replace(/^(['"])(.*)\1$/, "$2")),
    ...[...url.matchAll(/[?&]([^=&#\s]{1,100})=([^&#\s]*)/g)]
      .filter(([, name = "", value = ""]) => !HARMLESS.has(name.toLowerCase()) && !ORDINARY.test(value))
      .map(([, , value]) => value),
  ];
  const all = written.flatMap((text = "") => {
    const meant = [decoded(text), decoded(text.replaceAll("+", " "))];
    const spellings = meant.flatMap((one) => [
      one,
      encodeURIComponent(one),
      encodeURI(one),
      new URLSearchParams({ "": one }).toString().slice(1),
      JSON.stringify(one).slice(1, -1),
    ]);
    return [text, ...spellings];
  });
  return [...new Set(all)].filter(({ length }) => length >= SHORTEST).sort((a, b) => b.length - a.length);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
