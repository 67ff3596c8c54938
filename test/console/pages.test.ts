import type { IncomingMessage } from "node:http";
import { expect, it } from "vitest";
import { openConsole } from "../../src/console/console";

it("a page that the browser has is answered with its headers, as the page itself would be", async () => {
  const unused = {} as never;
  const console = openConsole({
    kinds: [],
    server: "https://cluster",
    operator: unused,
    recorder: unused,
    engine: unused,
  });
  const ask = (headers: object, url = "/console") => console({ url, headers } as IncomingMessage);
  const page = await ask({});
  expect(page?.status).toBe(200);
  expect(await ask({ "if-none-match": page?.headers?.etag })).toEqual({ ...page, status: 304 });
  expect(await ask({}, "//")).toBeUndefined();
});
