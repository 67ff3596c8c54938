import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parse, stringify } from "yaml";
import { resolveBinary } from "../../../src/toolchain/resolve";
import { testTools } from "../../tools";

/** Samples by series, in promtool's notation: `up{job="kindstack"}` and `1+0x90`. */
export type Series = Readonly<Record<string, string>>;

/** What Prometheus itself says of the alerting rules of deploy/. */
export class Promtool {
  readonly #binary: string;
  readonly #directory = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-promtool-"));

  private constructor(binary: string) {
    this.#binary = binary;
    const manifest = fs.readFileSync(path.resolve(__dirname, "../../../deploy/prometheus-rule.yaml"), "utf8");
    fs.writeFileSync(path.join(this.#directory, "rules.yaml"), stringify(parse(manifest).spec));
  }

  static async open(): Promise<Promtool> {
    return new Promtool(await resolveBinary(testTools.promtool));
  }

  close(): void {
    fs.rmSync(this.#directory, { recursive: true, force: true });
  }

  /** @throws with what is wrong with the rules */
  check(): string {
    return this.#run("check", "rules", "--lint=all", "--lint-fatal", "rules.yaml");
  }

  /** @throws unless these alerts, and no others, fire after so many minutes; `Name{label="value"}` each */
  expectFiring(series: Series, minutes: number, alerts: readonly string[]): void {
    const samples = alerts.map((alert) => {
      const [, name, labels = ""] = /^(\w+)(?:\{(.*)\})?$/.exec(alert) ?? [];
      return { labels: `{alertname="${name}"${labels && `,${labels}`}}`, value: 1 };
    });
    const expr = 'max without (severity, alertstate) (ALERTS{alertstate="firing"})';
    const test = {
      rule_files: ["rules.yaml"],
      evaluation_interval: "1m",
      tests: [
        {
          interval: "1m",
          input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
          promql_expr_test: [{ expr, eval_time: `${minutes}m`, exp_samples: samples }],
        },
      ],
    };
    fs.writeFileSync(path.join(this.#directory, "test.yaml"), stringify(test));
    this.#run("test", "rules", "test.yaml");
  }

  #run(...args: string[]): string {
    return execFileSync(this.#binary, args, { cwd: this.#directory, encoding: "utf8", stdio: "pipe" });
  }
}
