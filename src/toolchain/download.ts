import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import fs from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { PulumiCommand } from "@pulumi/pulumi/automation/cmd";
import { execa } from "execa";
import { EnvHttpProxyAgent, interceptors, request } from "undici";
import type { Source } from "./tool";

const CONNECT_TIMEOUT_MS = 3_000;
const ANSWER_TIMEOUT_MS = 5_000;
const SILENCE_TIMEOUT_MS = 15_000;
const INSTALLER_TIMEOUT_MS = 300_000;

/** Where a vendor says what the SHA-256 of a download is. */
type Checksum =
  /** A file of its own, with the sum alone. */
  | { type: "file"; url: string }
  /** A file with a line for each download: the sum, then the file's name. */
  | { type: "list"; url: string }
  /** GitHub's description of a release, in which every file has a digest. */
  | { type: "github-release"; repository: string; tag: string };

/** Downloads one file and verifies it; `member` names the file within, when it is an archive. */
export function vendorDownload(download: { url: string; checksum: Checksum; member?: string }): Source {
  return {
    label: `download from ${new URL(download.url).host}`,
    estimatedSeconds: 20,
    async make({ file, scratch, signal }) {
      const name = path.posix.basename(new URL(download.url).pathname);
      const expected = await publishedChecksum(download.checksum, name, signal);
      const archive = path.join(scratch, name);
      await save(download.url, archive, signal);
      const actual = await sha256(archive);
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

/** Pulumi's own installer, by way of its SDK, whose version it takes. */
export function pulumiInstaller(): Source {
  return {
    label: "download from get.pulumi.com",
    estimatedSeconds: 30,
    async make({ file, scratch, signal }) {
      // The installer itself would wait for minutes for hosts that do not answer.
      await fetchText("https://get.pulumi.com/install.sh", signal);
      await withTimeout(PulumiCommand.install({ root: scratch }), INSTALLER_TIMEOUT_MS);
      const [bin, folder] = [path.join(scratch, "bin"), path.dirname(file)];
      for (const name of await fs.readdir(bin)) await fs.rename(path.join(bin, name), path.join(folder, name));
    },
  };
}

async function publishedChecksum(checksum: Checksum, name: string, signal: AbortSignal): Promise<string> {
  const found = await lookUpChecksum(checksum, name, signal);
  if (found === undefined || !/^[0-9a-f]{64}$/.test(found)) throw new Error(`no checksum of ${name} is published`);
  return found;
}

async function lookUpChecksum(checksum: Checksum, name: string, signal: AbortSignal): Promise<string | undefined> {
  switch (checksum.type) {
    case "file":
      return (await fetchText(checksum.url, signal)).trim();
    case "list":
      return (await fetchText(checksum.url, signal))
        .split("\n")
        .map((line) => line.trim().split(/\s+\*?/))
        .find(([, file]) => file === name)?.[0];
    case "github-release": {
      const url = `https://api.github.com/repos/${checksum.repository}/releases/tags/${checksum.tag}`;
      const release = JSON.parse(await fetchText(url, signal)) as {
        assets: { name: string; digest?: string | null }[];
      };
      return release.assets.find((asset) => asset.name === name)?.digest?.replace(/^sha256:/, "");
    }
  }
}

async function fetchText(url: string, signal: AbortSignal): Promise<string> {
  return (await get(url, signal)).text();
}

async function save(url: string, file: string, signal: AbortSignal): Promise<void> {
  await pipeline(await get(url, signal), createWriteStream(file), { signal });
}

const dispatcher = new EnvHttpProxyAgent({
  connect: { timeout: CONNECT_TIMEOUT_MS },
  headersTimeout: ANSWER_TIMEOUT_MS,
  bodyTimeout: SILENCE_TIMEOUT_MS,
  keepAliveTimeout: 1_000,
}).compose(interceptors.redirect({ maxRedirections: 5 }));

/** Hosts that did not answer this process: each costs its time-out once, not once a tool. */
const silentHosts = new Map<string, string>();

async function get(url: string, signal: AbortSignal) {
  const { host } = new URL(url);
  const known = silentHosts.get(host);
  if (known !== undefined) throw new Error(known);
  let response: Awaited<ReturnType<typeof request>>;
  try {
    // A time limit for the answer alone: a signal given to the request would end the transfer of its body as well.
    response = await withTimeout(
      request(url, { dispatcher, signal, headers: { "user-agent": "kindstack" } }),
      CONNECT_TIMEOUT_MS + ANSWER_TIMEOUT_MS,
    );
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

function withTimeout<T>(work: Promise<T>, milliseconds: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not finished after ${milliseconds / 1000} s`)), milliseconds);
  });
  return Promise.race([work, expired]).finally(() => clearTimeout(timer));
}

async function sha256(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}
