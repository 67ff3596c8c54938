/**
 * What the API server tells in words alone, where neither status nor reason do. Each is tested against the API server's own words
 * (`messages.integration.test.ts`, `refusals.integration.test.ts`).
 */
export const MESSAGES = {
  noServiceAccount: /error looking up service account (?<account>[^:]+):/,
  terminating: /in namespace (?<namespace>\S+) because it is being terminated/,
  quota: /(exceeded quota: |status unknown for quota: )(?<quota>[^\s,]+)/,
  noRight: /" cannot (?<right>\w+ resource ".+)$/s,
  escalation: /is attempting to grant RBAC permissions not currently held/,
  webhookFailed: /failed calling webhook "(?<webhook>[^"]+)"/,
  noPriorityClass: /no PriorityClass with name (?<name>\S+) was found/,
  noRuntimeClass: /RuntimeClass "(?<name>[^"]+)" not found/,
  /** What a request refers to, such as the namespace of a new object or the role of a binding. */
  notFound: /^(?<resource>[a-z0-9.-]+) "(?<name>[^"]+)" not found$/,
  starting: /not yet ready to handle request/,
  /** What is applied has a field, or a type of value, that the schema does not have: called an error of the server. */
  untyped: /^failed to create typed patch object/,
  /** An apply names the UID of a predecessor. */
  otherUid: /metadata\.uid: Invalid value/,
  noDryRun: /does not support dry run/,
  notServed: /could not find the requested resource/,
  /** Of a webhook that refuses by a status of its own. */
  denied: /denied (the )?request/,
} as const satisfies Record<string, RegExp>;
