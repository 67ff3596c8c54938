/*
 * An operator in a few lines, to be killed: it updates one stack that uses the plugin `vault`, says the numbers of the
 * processes, and stays.
 */
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { secret } = require("@pulumi/pulumi/output");
const { CustomResource, ProviderResource } = require("@pulumi/pulumi/resource");
const { ProviderHost } = require("../../dist/providers/host/session");
const { GoEngine } = require("../../dist/src/automation/go-engine");
const { openEngine } = require("../../dist/src/automation/workspace");

const [file, directory] = process.argv.slice(2);

async function main() {
  const processes = await openEngine({
    file,
    workDirectory: path.join(directory, "work"),
    backendUrl: pathToFileURL(path.join(directory, "state")).href,
    protection: { passphrase: { value: "the-passphrase" }, keyService: undefined },
    environment: { ...process.env, PATH: `${directory}${path.delimiter}${process.env.PATH}` },
    log: console,
  });
  const engine = new GoEngine({ processes, host: new ProviderHost(new Map()), timeoutMs: 60_000 });
  const program = async () => {
    const token = secret("the-token-of-the-vault");
    const provider = new ProviderResource("vault", "killed/vault", { directory, token });
    new CustomResource("vault:index:Entry", "killed/entry", { path: "killed", value: "a value" }, { provider });
  };
  const { failures } = await engine.up("killed", program, { sdkRuntime: true });
  const plugins = await processes.plugins.list();
  const host = processes.plugins.process.pid;
  process.stdout.write(`${JSON.stringify({ failures, pids: [host, ...plugins.map(({ pid }) => pid)] })}\n`);
}

void main();
