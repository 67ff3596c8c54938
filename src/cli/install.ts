import { Command, InvalidArgumentError } from "commander";
import { stringify } from "yaml";
import { kinds } from "../../stacks/index";
import { describeConfiguration, parseConfiguration } from "../../stacks/platform/configuration";
import { packageVersion } from "../package";
import { renderTable } from "../text/table";

interface InstallOptions {
  set?: Record<string, string>;
}

/** Keys that are `pulumi up`'s own: what is printed is always the installation and nothing but that. */
const PULUMI_KEYS = ["install", "manifests"];

export function installCommand(): Command {
  return new Command("install")
    .description("print the manifests that install the operator into a cluster, for kubectl")
    .requiredOption("--print", "print them as YAML; `pulumi up` is what installs by itself")
    .option("--set <key=value>", "a key of the configuration; may be repeated", keyValue)
    .addHelpText("after", () => `\nConfiguration:\n${configurationTable()}\n\n${EXAMPLE}`)
    .action(async ({ set = {} }: InstallOptions) => {
      const configuration = parseConfiguration(set, packageVersion());
      const { platformManifests } = await import("../../stacks/platform/manifests.js");
      const documents = (await platformManifests(configuration, kinds)).map((manifest) =>
        stringify(manifest, { aliasDuplicateObjects: false, lineWidth: 0 }),
      );
      process.stdout.write(documents.join("---\n"));
    });
}

const EXAMPLE = `Example:
  kindstack install --print --set image=registry.example.com/kindstack:1 | kubectl apply --server-side -f -`;

function configurationTable(): string {
  const rows = describeConfiguration().filter(({ key }) => !PULUMI_KEYS.includes(key));
  return renderTable(
    ["key", "default", "meaning"],
    rows.map(({ key, default: value, description }) => [key, value || "-", description]),
  );
}

function keyValue(text: string, others: Record<string, string> = {}): Record<string, string> {
  const [key = "", ...rest] = text.split("=");
  if (rest.length === 0) throw new InvalidArgumentError("key=value is needed.");
  if (PULUMI_KEYS.includes(key)) throw new InvalidArgumentError(`${key} is for \`pulumi up\`.`);
  return { ...others, [key]: rest.join("=") };
}
