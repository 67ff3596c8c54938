// Makes the pictures of the pages again, from what a development cluster really shows: docs/console.png and
// docs/preview-comment.png. It needs Chromium and a cluster with the samples:
//   npx kindstack dev --detach --fresh && . .kindstack/dev/env && node tools/pictures.mjs http://127.0.0.1:PORT/console
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const [address] = process.argv.slice(2);
if (address === undefined || process.env.KUBECONFIG === undefined) {
  console.error("usage: . .kindstack/dev/env && node tools/pictures.mjs CONSOLE_URL");
  process.exit(2);
}
const root = fileURLToPath(new URL("..", import.meta.url));
const MARKED = "marked@18.2.1"; // renders GitHub's Markdown; only this script needs it

/** What a pull request would change in the samples. */
const CHANGES = {
  tenant: (text) => text.replace("admin@yourdomain.com", "ops@yourdomain.com").replace(/ +- tenant-sample-ns2\n/, ""),
  "postgres-writer": (text) => text.replace("age: 23", "age: 24"),
  memcached: (text) => text.replace("memcached-sample", "sessions"),
};

function previewAsHtml(folder) {
  const manifests = join(folder, "manifests");
  mkdirSync(manifests);
  for (const [kind, change] of Object.entries(CHANGES)) {
    const before = readFileSync(join(root, "stacks/kinds", kind, "sample.yaml"), "utf8");
    const after = change(before);
    if (after === before) throw new Error(`the sample of ${kind} has changed: nothing is different`);
    writeFileSync(join(manifests, `${kind}.yaml`), after);
  }
  const words = ["preview", "-f", manifests, "--output", "markdown"];
  const { stdout, stderr, status } = spawnSync(process.execPath, [join(root, "dist/src/cli/main.js"), ...words], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(stderr);
  return execFileSync("npx", ["--yes", MARKED, "--gfm"], { input: stdout, encoding: "utf8" });
}

const STYLE = `
body { margin: 0; padding: 20px; background: #fff; color: #1f2328; font: 14px/1.5 "Segoe UI", "DejaVu Sans", sans-serif; }
article { border: 1px solid #d1d9e0; border-radius: 6px; }
header { padding: 8px 16px; background: #f6f8fa; border-bottom: 1px solid #d1d9e0; border-radius: 6px 6px 0 0; color: #59636e; }
header b { color: #1f2328; }
section { padding: 4px 16px 8px; }
table { border-collapse: collapse; margin: 16px 0; }
th, td { border: 1px solid #d1d9e0; padding: 6px 13px; text-align: left; }
code { background: #818b981f; border-radius: 6px; padding: 0.2em 0.4em; font: 85% "DejaVu Sans Mono", monospace; }
details { margin: 0 0 12px; }`;

async function take(browser, name, options, show) {
  const context = await browser.newContext({ viewport: { width: 1000, height: 720 }, ...options });
  const page = await context.newPage();
  const shown = await show(page);
  await shown.screenshot({ path: join(root, "docs", name) });
}

const folder = mkdtempSync(join(tmpdir(), "kindstack-pictures-"));
const executablePath = process.env.KINDSTACK_CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  await take(browser, "console.png", { colorScheme: "dark" }, async (page) => {
    await page.goto(`${address}/objects/tenants.multitenancy.codereliant.io/tenant-sample`);
    await page.locator("svg .node").first().waitFor();
    return page;
  });
  const html = previewAsHtml(folder);
  await take(browser, "preview-comment.png", { colorScheme: "light" }, async (page) => {
    const comment = `<article><header><b>github-actions</b> bot commented</header><section>${html}</section></article>`;
    await page.setContent(`<!doctype html><meta charset="utf-8"><style>${STYLE}</style><body>${comment}</body>`);
    await page.locator("details", { hasText: "tenant-sample" }).evaluate((details) => details.setAttribute("open", ""));
    return page.locator("body");
  });
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
