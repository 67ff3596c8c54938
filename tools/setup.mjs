// Makes a fresh or outdated clone ready to run: installs what package-lock.json says and compiles. Cheap when there is
// nothing to do. It may use nothing but Node.js itself.
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const installed = path.join(root, "node_modules", ".package-lock.json");
const wanted = path.join(root, "package-lock.json");

if (!existsSync(installed) || statSync(installed).mtimeMs < statSync(wanted).mtimeMs) {
  console.error("installing dependencies");
  // `npm ci` runs the script `prepare`, which compiles.
  run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
} else {
  run("npm", ["run", "--silent", "build"]);
}

/** Runs a command that says itself what went wrong, and ends as it ends. */
function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: "inherit" });
  if (error) console.error(`${command} could not be run: ${error.message}`);
  if (status !== 0) process.exit(1);
}
