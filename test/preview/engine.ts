import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ProviderHost } from "../../providers/host/host";
import { providersOf } from "../../providers/index";
import { GoEngine } from "../../src/automation/go-engine";
import { openEngine } from "../../src/automation/workspace";
import { resolveBinary } from "../../src/toolchain/resolve";

/** An engine with a state of its own. */
export async function openTestEngine() {
  const directory = await mkdtemp(join(tmpdir(), "kindstack-previews-"));
  const stateUrl = pathToFileURL(join(directory, "state")).href;
  const processes = await openEngine({
    file: await resolveBinary("engine"),
    workDirectory: join(directory, "work"),
    backendUrl: stateUrl,
    protection: { passphrase: { value: "the-passphrase" }, keyService: undefined },
    environment: process.env,
    log: console,
  });
  return {
    directory,
    stateUrl,
    engine: new GoEngine({ processes, host: new ProviderHost(providersOf()), timeoutMs: 60_000 }),
    async close() {
      await processes.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
