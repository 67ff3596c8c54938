import { scryptSync } from "node:crypto";
import type { Manifest } from "../../providers/kubernetes/client";
import { hasPassword } from "../../providers/passwords";
import type { Configuration } from "./configuration";
import { LABELS } from "./labels";

/** Keys of the Secret of the state. */
export const PASSPHRASE_KEY = "passphrase";
export const BACKEND_URL_KEY = "backendUrl";

/** The Secrets for which the configuration has values; all others are only referred to. */
export function secrets(configuration: Configuration): Manifest[] {
  const { namespace, stateSecret, passphrase, backendUrl, postgresSecret, postgresHost } = configuration;
  const url = backendUrl !== undefined && hasPassword(backendUrl) && { [BACKEND_URL_KEY]: backendUrl };
  const database = {
    PSQL_HOST: postgresHost,
    PSQL_PORT: String(configuration.postgresPort),
    PSQL_DBNAME: configuration.postgresDatabase,
    PSQL_USER: configuration.postgresUser,
    PSQL_PASSWORD: configuration.postgresPassword,
    PGSSLMODE: configuration.postgresSslMode,
  };
  const secret = (name: string, stringData: object): Manifest => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace, labels: LABELS },
    type: "Opaque",
    stringData,
  });
  return [
    ...(passphrase === undefined ? [] : [secret(stateSecret, { [PASSPHRASE_KEY]: passphrase, ...url })]),
    ...(postgresHost === undefined ? [] : [secret(postgresSecret, database)]),
  ];
}

/**
 * Tells whether any value of the configuration's Secrets has changed; `undefined` when there are none. Many may read
 * it, so its function is slow, against guesses of passwords.
 */
export function secretsDigest(configuration: Configuration): string | undefined {
  const made = secrets(configuration);
  if (made.length === 0) return undefined;
  const values = JSON.stringify(made.map(({ stringData }) => stringData));
  return scryptSync(values, configuration.namespace, 16).toString("hex");
}
