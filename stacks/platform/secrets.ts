import type { Manifest } from "../../providers/kubernetes/client";
import { type Configuration, hasPassword } from "./configuration";
import { LABELS } from "./labels";

/** Keys of the Secret of the state. */
export const PASSPHRASE_KEY = "passphrase";
export const BACKEND_URL_KEY = "backendUrl";

/** The Secrets for which the configuration has values; all others are only referred to. */
export function secrets(configuration: Configuration): Manifest[] {
  const { namespace, stateSecret, passphrase, backendUrl, postgresSecret, postgresHost } = configuration;
  const secret = (name: string, stringData: Record<string, string>): Manifest => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace, labels: LABELS },
    type: "Opaque",
    stringData,
  });
  const made: Manifest[] = [];
  if (passphrase !== undefined) {
    const url = backendUrl !== undefined && hasPassword(backendUrl) ? { [BACKEND_URL_KEY]: backendUrl } : {};
    made.push(secret(stateSecret, { [PASSPHRASE_KEY]: passphrase, ...url }));
  }
  if (postgresHost !== undefined) {
    made.push(
      secret(postgresSecret, {
        PSQL_HOST: postgresHost,
        PSQL_PORT: String(configuration.postgresPort),
        PSQL_DBNAME: configuration.postgresDatabase ?? "",
        PSQL_USER: configuration.postgresUser ?? "",
        PSQL_PASSWORD: configuration.postgresPassword ?? "",
        PGSSLMODE: configuration.postgresSslMode,
      }),
    );
  }
  return made;
}
