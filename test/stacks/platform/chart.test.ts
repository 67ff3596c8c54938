import { expect, it } from "vitest";
import { chartFiles } from "../../../stacks/platform/chart";
import { keySchemas } from "../../../stacks/platform/configuration";
import { parseConfiguration } from "../../../stacks/platform/parse-configuration";

const secretKeys = [...keySchemas].filter(([, { secret }]) => secret).map(([key]) => key);
const CASES: Record<string, { values: Record<string, string>; advice: string }> = {
  passphrase: { values: { passphrase: "p" }, advice: "put it under the key passphrase into stateSecret" },
  backendUrl: {
    values: { backendUrl: "s3://bucket" },
    advice: "put it under the key backendUrl into stateSecret and set backendFromSecret",
  },
  postgresPassword: {
    values: {
      postgresHost: "db",
      postgresDatabase: "d",
      postgresUser: "u",
      postgresPassword: "p",
      postgresTables: "*",
    },
    advice:
      "put PSQL_HOST, PSQL_DBNAME, PSQL_USER and PSQL_PASSWORD into postgresSecret, in place of postgresHost and its keys",
  },
};

it.each(secretKeys)("a chart with the value of %s is not made, and the error says where it belongs", (key) => {
  const { values = {}, advice = "" } = CASES[key] ?? {};
  const write = () => chartFiles(parseConfiguration(values, "1.2.3"), [], "1.2.3");

  expect(write).toThrow(`kindstack:${key}: a chart contains no Secrets; ${advice}`);
});
