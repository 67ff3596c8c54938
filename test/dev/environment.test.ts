import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { environmentFile, environmentOf } from "../../src/dev/cluster";
import { layoutOf } from "../../src/dev/layout";

const shell = (script: string) =>
  execFileSync("sh", ["-c", script], { encoding: "utf8", env: { PATH: process.env.PATH } });

describe("the file of variables", () => {
  it("gives a POSIX shell every value as it is", () => {
    const word = fc.string({
      unit: fc.constantFrom("a", "'", '"', "\\", "$", "`", " ", "\n", "é", "!"),
      maxLength: 20,
    });
    fc.assert(
      fc.property(word, (value) => {
        const printed = shell(`${environmentFile({ VALUE: value })}\nexec printenv VALUE`);

        expect(printed).toBe(`${value}\n`);
      }),
      { numRuns: 30 },
    );
  });

  it("names only absolute paths, wherever the directory was named from", () => {
    const settings = { host: "127.0.0.1", port: 5432, database: "d", user: "u", password: "p" };

    const environment = environmentOf(layoutOf("some dir/dev"), settings, 8080);

    expect(environment).toMatchObject({
      KUBECONFIG: `${process.cwd()}/some dir/dev/kubeconfig`,
      PULUMI_BACKEND_URL: `file://${process.cwd()}/some%20dir/dev/state`,
      KINDSTACK_WORK_DIR: `${process.cwd()}/some dir/dev/work`,
      PSQL_HOST: "127.0.0.1",
      PSQL_PORT: "5432",
      DATABASE_URL: "postgres://u:p@127.0.0.1:5432/d",
      KINDSTACK_METRICS_URL: "http://127.0.0.1:8080/metrics",
    });
  });
});
