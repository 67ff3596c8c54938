import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { type Browser, chromium } from "playwright-core";

const CANDIDATES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The Chromium of this machine, which is installed from Debian's packages where that may be done. */
function findChromium(): string | undefined {
  const isThere = () => [process.env.KINDSTACK_CHROMIUM ?? "", ...CANDIDATES].find((file) => fs.existsSync(file));
  const found = isThere();
  if (found !== undefined || process.getuid?.() !== 0 || spawnSync("which", ["apt-get"]).status !== 0) return found;
  spawnSync("apt-get", ["update", "-qq"], { stdio: "ignore" });
  spawnSync("apt-get", ["install", "-y", "--no-install-recommends", "chromium"], { stdio: "ignore" });
  return isThere();
}

const executablePath = findChromium();
/** Why tests in a browser are skipped; `undefined` when they need not be. */
export const noBrowser = executablePath === undefined ? "there is no Chromium, nor the right to install it" : undefined;

export function openBrowser(): Promise<Browser> {
  return chromium.launch({ ...(executablePath && { executablePath }), args: ["--no-sandbox"] });
}
