import { createHash } from "node:crypto";
import fs from "node:fs/promises";
import http from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { vendorDownload } from "../../src/toolchain/download";
import { testDirectory } from "../directories";

const CONTENT = "#!/bin/sh\n";
const CHECKSUM = createHash("sha256").update(CONTENT).digest("hex");

let root: string;
let server: http.Server;
let vendor: string;
/** What the vendor publishes, by path; `undefined` is a request that is never answered. */
let published: Record<string, string | undefined>;

beforeEach(async () => {
  root = testDirectory();
  for (const directory of ["made", "scratch"]) await fs.mkdir(path.join(root, directory));
  server = http.createServer((request, response) => {
    const url = request.url ?? "";
    if (!(url in published)) response.writeHead(404).end();
    else if (published[url] !== undefined) response.end(published[url]);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  vendor = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  server.closeAllConnections();
  server.close();
});

function download(): Promise<void> {
  const source = vendorDownload({ url: `${vendor}/hammer-linux`, checksums: `${vendor}/sums` });
  const [home, scratch] = [path.join(root, "made"), path.join(root, "scratch")];
  return source.make({ file: path.join(home, "hammer"), home, scratch, signal: new AbortController().signal });
}

describe("a vendor's download", () => {
  it("becomes an executable when it has the checksum that was published", async () => {
    published = { "/hammer-linux": CONTENT, "/sums": `${CHECKSUM}\n` };

    await download();

    const file = path.join(root, "made", "hammer");
    expect(await fs.readFile(file, "utf8")).toBe(CONTENT);
    expect((await fs.stat(file)).mode & 0o777).toBe(0o755);
  });

  it("finds its line in a list of checksums", async () => {
    const other = "0".repeat(64);
    published = { "/hammer-linux": CONTENT, "/sums": `${other}  hammer-darwin\n${CHECKSUM}  hammer-linux\n` };

    await download();

    expect(await fs.readdir(path.join(root, "made"))).toEqual(["hammer"]);
  });

  it.each([
    ["it has another checksum", "something else", CHECKSUM, `its vendor published ${CHECKSUM}`],
    ["no checksum of it is published", CONTENT, `${CHECKSUM}  hammer-darwin\n`, "no checksum of hammer-linux is"],
    ["its vendor does not have it", undefined, CHECKSUM, "/hammer-linux answered 404"],
  ])("is refused when %s", async (_, content, sums, message) => {
    published = { ...(content && { "/hammer-linux": content }), "/sums": sums };

    await expect(download()).rejects.toThrow(message);
    expect(await fs.readdir(path.join(root, "made"))).toEqual([]);
  });

  it("is given up when the vendor does not answer, and that vendor is not asked again", async () => {
    published = { "/sums": undefined };
    await expect(download()).rejects.toThrow("does not answer");
    published = { "/hammer-linux": CONTENT, "/sums": CHECKSUM };

    await expect(download()).rejects.toThrow("does not answer");
  });
});
