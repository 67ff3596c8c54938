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
