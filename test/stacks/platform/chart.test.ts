import { expect, it } from "vitest";
import { kinds } from "../../../stacks/kinds/index";
import { helmChart } from "../../../stacks/platform/chart";
import { keySchemas } from "../../../stacks/platform/configuration";
import { platformManifests } from "../../../stacks/platform/manifests";
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

it.each(secretKeys)("a chart with the value of %s is not made, and the error says where it belongs", async (key) => {
  const { values = {}, advice = "" } = CASES[key] ?? {};
  const made = helmChart(parseConfiguration(values, "1.2.3"), [], "1.2.3");

  await expect(made).rejects.toThrow(`kindstack:${key}: a chart contains no Secrets; ${advice}`);
});

it("has a file for each object that is installed, also where two have the same name", async () => {
  const switches = ["proxy", "serviceMonitor", "prometheusRule", "grafanaDashboard", "authorMayNotApprove"];
  const values = Object.fromEntries(switches.map((key) => [key, "true"]));
  const configuration = parseConfiguration({ ...values, postgresTables: "" }, "1.2.3");
  const installed = (await platformManifests(configuration, kinds)).filter(({ kind }) => kind !== "Namespace");

  const files = Object.entries(await helmChart(configuration, kinds, "1.2.3"));

  const named = (kind: string, name: string | undefined) => `${kind}/${name}`;
  const objectsIn = files.flatMap(([file, text]) =>
    file.startsWith("templates/")
      ? [named(/^kind: (.*)$/m.exec(text)?.[1] ?? "", /^ {2}name: (.*)$/m.exec(text)?.[1]?.replaceAll('"', ""))]
      : [],
  );
  expect(objectsIn.sort()).toEqual(installed.map(({ kind, metadata }) => named(kind, metadata.name)).sort());
});
