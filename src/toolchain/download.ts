import { hash } from "node:crypto";
import { createWriteStream } from "node:fs";
import fs from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { execa } from "execa";
import { EnvHttpProxyAgent, interceptors, request } from "undici";
import { inTime } from "../../providers/in-time";
import type { Source } from "./tool";

const CONNECT_TIMEOUT_MS = 3_000;
const ANSWER_TIMEOUT_MS = 5_000;
const SILENCE_TIMEOUT_MS = 15_000;
const INSTALLER_TIMEOUT_MS = 300_000;

/**
 * Where a vendor publishes the SHA-256 of a download: at a URL, a file with the sum alone or with a line for each download;
 * or in GitHub's description of a release, in which every file has a digest.
 */
type Checksums = string | { repository: string; tag: string };

/** Downloads one file and verifies it; `member` names the file within, when it is an archive. */
export function vendorDownload(download: { url: string; checksums: Checksums; member?: string }): Source {
  return {
    label: `download from ${new URL(download.url).host}`,
    estimatedSeconds: 20,
    async make({ file, scratch, signal }) {
      const name = path.posix.basename(new URL(download.url).pathname);
      const expected = await publishedChecksum(download.checksums, name, signal);
      const archive = path.join(scratch, name);
      await pipeline(await get(download.url, signal), createWriteStream(archive), { signal });
      const actual = hash("sha256", await fs.readFile(archive));
      if (actual !== expected) {
        throw new Error(`the checksum of ${download.url} is ${actual}; its vendor published ${expected}`);
      }
      if (download.member !== undefined) {
        await execa("tar", ["-xf", archive, "-C", scratch, download.member], { cancelSignal: signal });
      }
      await fs.rename(path.join(scratch, download.member ?? name), file);
      await fs.chmod(file, 0o755);
    },
  };
}

export function pulumiInstaller(version: string): Source {
  return {
    label: "download from get.pulumi.com",
    estimatedSeconds: 30,
    async make({ file, scratch, signal }) {
      const script = path.join(scratch, "install.sh");
      await fs.writeFile(script, await fetchText("https://get.pulumi.com/install.sh", signal));
      await execa("/bin/sh", [script, "--no-edit-path", "--install-root", scratch, "--version", version], {
        cancelSignal: signal,
        timeout: INSTALLER_TIMEOUT_MS,
        stdin: "ignore",
      });
      const [bin, folder] = [path.join(scratch, "bin"), path.dirname(file)];
      for (const name of await fs.readdir(bin)) await fs.rename(path.join(bin, name), path.join(folder, name));
    },
  };
}

async function publishedChecksum(checksums: Checksums, name: string, signal: AbortSignal): Promise<string> {
  const found = (await readChecksums(checksums, signal)).find(
    ([sum = "", file]) => /^[0-9a-f]{64}$/.test(sum) && (file === undefined || file === name),
  );
  if (found?.[0] === undefined) throw new Error(`no checksum of ${name} is published`);
  return found[0];
}

/** @returns each sum with its file's name, if it has one */
async function readChecksums(checksums: Checksums, signal: AbortSignal): Promise<(string | undefined)[][]> {
  if (typeof checksums === "string") {
    return (await fetchText(checksums, signal)).split("\n").map((line) => line.trim().split(/\s+\*?/));
  }
  const { repository, tag } = checksums;
  const url = `https://api.github.com/repos/${repository}/releases/tags/${tag}`;
  const { assets } = JSON.parse(await fetchText(url, signal)) as { assets: { name: string; digest?: string | null }[] };
  return assets.map(({ name, digest }) => [digest?.replace(/^sha256:/, ""), name]);
}

async function fetchText(url: string, signal: AbortSignal): Promise<string> {
  return (await get(url, signal)).text();
}

const dispatcher = new EnvHttpProxyAgent({
  connect: { timeout: CONNECT_TIMEOUT_MS },
  headersTimeout: ANSWER_TIMEOUT_MS,
  bodyTimeout: SILENCE_TIMEOUT_MS,
  keepAliveTimeout: 1_000,
}).compose(interceptors.redirect({ maxRedirections: 5 }));

/** Hosts that did not answer: each costs its time-out once per process, not once per tool. */
const silentHosts = new Map<string, string>();

async function get(url: string, signal: AbortSignal) {
  const { host } = new URL(url);
  const known = silentHosts.get(host);
  if (known !== undefined) throw new Error(known);
  let response: Awaited<ReturnType<typeof request>>;
  try {
    // A time limit for the answer alone: a signal given to the request would end the transfer of its body as well.
    const answer = request(url, { dispatcher, signal, headers: { "user-agent": "kindstack" } });
    const limitMs = CONNECT_TIMEOUT_MS + ANSWER_TIMEOUT_MS;
    response = await inTime(answer, limitMs, () => new Error(`not finished after ${limitMs / 1000} s`));
  } catch (error) {
    signal.throwIfAborted();
    const { code, message } = error as { code?: string; message?: string };
    const reason = `${host} does not answer: ${message || code}`;
    silentHosts.set(host, reason);
    throw new Error(reason);
  }
  if (response.statusCode !== 200) {
    await response.body.dump();
    throw new Error(`${url} answered ${response.statusCode}`);
  }
  return response.body;
}
