import { hash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { kindName } from "../../stacks/contract/kind";
import type { Answer } from "../http/answer";
import type { Html } from "./html";
import { kindPage } from "./kind-page";
import { layout, messagePage, SCRIPT, STYLE } from "./layout";
import { objectPage } from "./object-page";
import { overviewPage } from "./overview-page";
import { CONSOLE_PATH, type Console } from "./paths";
import { type ConsoleOptions, consoleSource } from "./source";

/** Only the console's own script and style load; other pages can neither frame it nor receive its forms. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HEADERS = { "content-security-policy": POLICY, "referrer-policy": "no-referrer" };

/** The console of an operator. The caller decides whether a request may be answered. */
export function openConsole(options: ConsoleOptions): Console {
  const source = consoleSource(options);
  return async (request) => {
    const { pathname, searchParams } = new URL(`http://console${request.url}`);
    if (pathname !== CONSOLE_PATH && !pathname.startsWith(`${CONSOLE_PATH}/`)) return undefined;
    const words = wordsOf(pathname.slice(CONSOLE_PATH.length));
    if (words === undefined) return page(request, 404, "Not found", messagePage("There is no such page."));
    const [section = "", name = "", ...key] = words;
    if (section === "style.css") return file("text/css; charset=utf-8", STYLE);
    if (section === "live.js") return file("text/javascript; charset=utf-8", SCRIPT);
    if (section === "") return page(request, 200, "Overview", overviewPage(source));
    const kind = source.kinds.find((kind) => kindName(kind) === name);
    if (kind !== undefined && section === "kinds" && key.length === 0) {
      return page(request, 200, name, kindPage(source, kind, searchParams));
    }
    const object =
      kind !== undefined && section === "objects" && key.length > 0 && source.operator.object(kind, key.join("/"));
    if (kind !== undefined && object) {
      return page(request, 200, key.join("/"), await objectPage(source, kind, object));
    }
    return page(request, 404, "Not found", messagePage("There is no such page, or the object is gone."));
  };
}

function wordsOf(path: string): string[] | undefined {
  try {
    return path
      .split("/")
      .filter((word) => word !== "")
      .map(decodeURIComponent);
  } catch {
    return undefined; // half of an escape
  }
}

/** A browser that has the current page gets 304. */
function page(request: IncomingMessage, status: number, title: string, content: Html): Answer {
  const body = layout(title, content).text;
  const etag = `"${hash("sha256", body, "base64url")}"`;
  const isKnown = status === 200 && request.headers["if-none-match"] === etag;
  const headers = { ...HEADERS, etag, "cache-control": "no-cache" };
  return { status: isKnown ? 304 : status, contentType: "text/html; charset=utf-8", headers, body };
}

function file(contentType: string, body: string): Answer {
  return { status: 200, contentType, headers: HEADERS, body };
}
