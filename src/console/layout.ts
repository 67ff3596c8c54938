import { packageVersion } from "../package";
import { type Html, html } from "./html";
import { CONSOLE_PATH } from "./paths";

const SECONDS_WITHOUT_SCRIPT = 10;

export function layout(title: string, content: Html): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Kindstack</title>
<link rel="stylesheet" href="${CONSOLE_PATH}/style.css">
<noscript><meta http-equiv="refresh" content="${SECONDS_WITHOUT_SCRIPT}"></noscript>
<script src="${CONSOLE_PATH}/live.js" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header><nav aria-label="Console"><a class="brand" href="${CONSOLE_PATH}">Kindstack</a></nav><span id="live" role="status">live</span></header>
<main id="content" tabindex="-1">${content}</main>
<footer>Kindstack ${packageVersion} · read-only</footer>
</body>
</html>
`;
}

export function messagePage(message: string): Html {
  return html`<h1>${message}</h1><p><a href="${CONSOLE_PATH}">Overview</a></p>`;
}

/** Fetches the page every few seconds and replaces what has changed; focus and scroll position stay. */
export const SCRIPT = `"use strict";
const INTERVAL_MS = 3000;
const live = document.getElementById("live");
let etag = "";
async function refresh() {
  try {
    const response = await fetch(location.href, { headers: etag ? { "if-none-match": etag } : {}, cache: "no-store" });
    if (response.status !== 304) {
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const next = page.getElementById("content");
      if (!next) throw new Error("not a page of the console");
      etag = response.headers.get("etag") || "";
      const current = document.getElementById("content");
      if (current.innerHTML !== next.innerHTML) {
        const focused = document.activeElement && document.activeElement.getAttribute("href");
        document.title = page.title;
        current.replaceChildren(...next.childNodes);
        if (focused) for (const link of current.querySelectorAll("a")) if (link.getAttribute("href") === focused) { link.focus({ preventScroll: true }); break; }
      }
    }
    live.textContent = "live";
    live.className = "";
  } catch {
    live.textContent = "not connected";
    live.className = "lost";
  }
  setTimeout(refresh, INTERVAL_MS);
}
setTimeout(refresh, INTERVAL_MS);
`;

/** Follows the colour scheme and the font size of the browser. */
export const STYLE = `:root {
  color-scheme: light dark;
  --paper: #f7f7f5; --card: #ffffff; --ink: #1f2328; --soft: #5b636d; --line: #dcdfe3; --link: #0b57b0;
  --good: #1a7f37; --bad: #c2261d; --busy: #8a5a00; --idle: #5b636d;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171b; --card: #1c2026; --ink: #e4e7ea; --soft: #9aa4af; --line: #323841; --link: #7db5ff;
    --good: #57c26f; --bad: #ff8578; --busy: #e2b04a; --idle: #9aa4af;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
header, main, footer { max-width: 76rem; margin: 0 auto; padding: 0 1.5rem; }
header { display: flex; justify-content: space-between; align-items: center; padding-top: 1.1rem; padding-bottom: 1.1rem; }
.brand { color: var(--ink); font-weight: 650; text-decoration: none; letter-spacing: 0.01em; }
#live { color: var(--soft); font-size: 0.85rem; }
#live::before { content: ""; display: inline-block; width: 0.5rem; height: 0.5rem; margin-right: 0.45rem; border-radius: 50%; background: var(--good); }
#live.lost::before { background: var(--bad); }
main { padding-bottom: 2rem; }
main:focus { outline: none; }
footer { color: var(--soft); font-size: 0.85rem; padding-top: 1rem; padding-bottom: 2rem; }
h1 { font-size: 1.6rem; font-weight: 620; line-height: 1.25; margin: 0.6rem 0 0; overflow-wrap: anywhere; }
h1 .badge { vertical-align: 0.2em; }
h2 { font-size: 1.05rem; font-weight: 620; margin: 0 0 0.6rem; }
section { margin-top: 2rem; }
a { color: var(--link); text-underline-offset: 0.15em; }
a:focus-visible, .scroll:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 3px; }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: 1rem; top: 0.5rem; background: var(--card); padding: 0.4rem 0.8rem; }
.where, .group, .crumbs { color: var(--soft); margin: 0.2rem 0 0.8rem; font-size: 0.9rem; overflow-wrap: anywhere; }
.cards { list-style: none; margin: 1.4rem 0 0; padding: 0; display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(15.5rem, 1fr)); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.1rem; }
.card h2 { margin: 0; }
.card h2 a { text-decoration: none; }
.count { font-size: 1.9rem; font-weight: 600; margin: 0.4rem 0 0; font-variant-numeric: tabular-nums; }
.count span { font-size: 0.9rem; font-weight: 400; color: var(--soft); }
meter { width: 100%; height: 0.55rem; appearance: none; border: 0; border-radius: 4px; background: none; }
meter::-webkit-meter-inner-element { display: block; height: 100%; }
meter::-webkit-meter-bar { height: 100%; border: 0; border-radius: 4px; background: var(--bad); }
meter::-webkit-meter-optimum-value { background: var(--good); border-radius: 4px; }
.reasons { list-style: none; padding: 0; margin: 0.5rem 0 0; font-size: 0.9rem; color: var(--soft); }
.filters { display: flex; flex-wrap: wrap; gap: 0.5rem; margin: 1rem 0; }
.filters a { padding: 0.15rem 0.7rem; border: 1px solid var(--line); border-radius: 999px; background: var(--card); text-decoration: none; }
.filters a[aria-current] { border-color: var(--link); font-weight: 600; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px; margin-bottom: 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: 0.7rem 1rem; color: var(--soft); font-size: 0.9rem; }
caption.hidden { position: absolute; clip-path: inset(50%); }
th, td { text-align: left; vertical-align: top; padding: 0.45rem 1rem; border-top: 1px solid var(--line); }
caption.hidden ~ thead th { border-top: 0; }
th { font-size: 0.8rem; font-weight: 600; color: var(--soft); }
td { overflow-wrap: break-word; }
time { white-space: nowrap; }
.message { display: block; min-width: 16rem; max-width: 44rem; white-space: pre-wrap; overflow-wrap: anywhere; }
code { font: 0.85em ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.changes { white-space: pre; }
td code { display: block; min-width: 11rem; }
.badge { display: inline-block; font-size: 0.8rem; font-weight: 600; line-height: 1.5; padding: 0 0.55rem; border-radius: 999px; border: 1px solid currentColor; white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); } .busy { color: var(--busy); } .idle { color: var(--idle); }
.problem { color: var(--bad); white-space: pre-wrap; }
.graph { display: block; margin: 1rem; font-size: 13px; }
.graph text { fill: var(--ink); }
.graph .type { fill: var(--soft); font-size: 11px; }
.graph rect { fill: var(--paper); stroke: var(--line); }
.graph .mark { fill: currentColor; stroke: none; }
.graph .edge { fill: none; stroke: var(--soft); stroke-width: 1.2; opacity: 0.6; }
@media (prefers-reduced-motion: no-preference) { a { transition: color 0.1s; } }
`;
