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
