import { isIPv4, isIPv6 } from "node:net";
import Format from "typebox/format";

/*
 * The API server reads some formats of a text otherwise than JSON schema does. An operator must not refuse what the API server
 * has accepted, so the formats that both know are checked here as there, or more loosely.
 */

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
/** Go's `time.ParseDuration`. */
const DURATION = /^[+-]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$/;
/** Scala's: `2 weeks`. */
const DURATION_IN_WORDS =
  /\d+\s*(ns|nano[a-z]*|us|µs|micro[a-z]*|ms|milli[a-z]*|s|sec[a-z]*|m|min[a-z]*|h|hr|hour[a-z]*|d|day[a-z]*|w|wk|week[a-z]*)(?![a-zµ])/i;
const DATE_TIME = /^\d{4}-\d\d-\d\dt([01]\d|2[0-3]):[0-5]\d:[0-5]\d(.\d+)?(z|[+-]\d\d:\d\d)$/i;
const HOSTNAME =
  /^([a-z0-9\p{S}\p{L}](-?[a-z0-9\p{S}\p{L}]{0,62})?|([a-z0-9\p{S}\p{L}]([a-z0-9\-\p{S}\p{L}]{0,61}[a-z0-9\p{S}\p{L}])?\.)+[a-z\p{L}]{2,63})$/iu;
const URI = /^(\/|[a-z][a-z0-9+.-]*:)/i;

const CHECKS: Readonly<Record<string, (text: string) => boolean>> = {
  uuid: (text) => UUID.test(text),
  duration: (text) => DURATION.test(text) || DURATION_IN_WORDS.test(text),
  "date-time": (text) => DATE_TIME.test(text),
  email: (text) => /.@./s.test(text),
  hostname: (text) => HOSTNAME.test(text),
  ipv4: (text) => text.includes(".") && (isIPv4(text.replace(/\b0+(?=\d)/g, "")) || isIPv6(text)),
  ipv6: (text) => isIPv6(text) && !text.includes("%"),
  uri: (text) => URI.test(text),
};
for (const [name, check] of Object.entries(CHECKS)) Format.Set(name, check);

/** The formats of a text that every supported API server checks; it ignores all others. */
export const SERVED_FORMATS: readonly string[] = [
  ...Object.keys(CHECKS),
  ...["date", "cidr", "mac", "uuid3", "uuid4", "uuid5", "byte", "password", "bsonobjectid", "isbn", "isbn10", "isbn13"],
  ...["creditcard", "ssn", "hexcolor", "rgbcolor"],
];

/** The API server ignores dashes in a format's name. */
export function isServedFormat(format: string): boolean {
  const plain = (name: string) => name.replaceAll("-", "");
  return SERVED_FORMATS.some((served) => plain(served) === plain(format)) || /^k8s-(short|long)-name$/.test(format);
}
