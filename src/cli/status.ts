import { Command, Option } from "commander";
import { TerminalError } from "../../providers/errors";
import { withKubernetes } from "../../providers/kubernetes/connection";
import { isLoopback } from "../http/loopback";
import { readOverview } from "../status/overview";
import { renderOverview } from "../status/render";
import { safeJson } from "../text/plain-text";
import { allKinds, type KindsOption, kindsOption } from "./kinds-option";
import { type OutputFormat, outputOption } from "./write-output";

interface StatusOptions extends KindsOption {
  output: OutputFormat;
  metricsUrl: string;
  metricsTokenFile?: string;
  namespace: string;
}

export function statusCommand(): Command {
  return new Command("status")
    .description("show kinds, objects that are not Ready, the operator's queue and updates, shards and Events")
    .addOption(outputOption())
    .addOption(kindsOption("kinds to show"))
    .addOption(
      new Option("--metrics-url <url>", "address of the operator's metrics")
        .env("KINDSTACK_METRICS_URL")
        .default("http://127.0.0.1:8080/metrics"),
    )
    .option("--metrics-token-file <file>", "file with a token that may read the metrics")
    .option("-n, --namespace <namespace>", "the operator's namespace", "kindstack-system")
    .addHelpText(
      "after",
      `
Parts that you may not read are left out with a note. An operator in a cluster serves metrics over TLS, with a token.

Examples:
  kindstack status
  kubectl port-forward -n kindstack-system service/kindstack 8443 &
  kubectl create token prometheus -n monitoring > token
  kindstack status --metrics-url https://localhost:8443/metrics --metrics-token-file token`,
    )
    .action(async (options: StatusOptions) => {
      const { output, metricsUrl, metricsTokenFile, namespace } = options;
      const url = URL.canParse(metricsUrl) ? new URL(metricsUrl) : undefined;
      const isLocal = url !== undefined && isLoopback(url.hostname);
      if (metricsTokenFile !== undefined && url?.protocol === "http:" && !isLocal) {
        throw new TerminalError(
          "Misconfigured",
          `--metrics-url ${metricsUrl} would be sent the token in clear text: use https://, or forward the port to this machine`,
        );
      }
      const kinds = allKinds(options);
      // The operator's own certificate is made at each start; clients cannot verify it. It is taken from this machine only.
      const metrics = { url: metricsUrl, tokenFile: metricsTokenFile, insecure: isLocal };
      const overview = await withKubernetes((client) => readOverview(client, kinds, metrics, namespace));
      process.stdout.write(`${output === "json" ? safeJson(overview) : renderOverview(overview)}\n`);
      const unreadable = overview.kinds.filter((kind) => "error" in kind && kind.error !== "not installed");
      if (unreadable.length === kinds.length) throw new Error("no kind could be read");
    });
}
