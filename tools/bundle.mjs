// Bundles libraries of hundreds of modules into dist/vendor, and lets the compiled code load them from there: to find and
// link those modules took most of the start of every command. Without this step everything works, only slower: `preview --help`
// takes 1.4 s of CPU time in place of 0.5, and 181 MiB in place of 113.
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const ENTRIES = [
  "@kubernetes/client-node",
  "@peculiar/x509",
  "execa",
  "ora",
  "typebox",
  "typebox/compile",
  "typebox/error",
  "typebox/format",
  "typebox/value",
  "undici",
  "yaml",
];

/** What the project uses of a library that is mostly code it does not use; the rest is left out. */
const USED = {
  "@kubernetes/client-node": ["KubeConfig"],
  undici: ["Agent", "EnvHttpProxyAgent", "ProxyAgent", "interceptors", "request"],
};

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const dist = path.join(root, "dist");
const vendor = path.join(dist, "vendor");

const licenses = path.join(vendor, "LICENSES.txt"); // is written last
const dependencies = path.join(root, "node_modules/.package-lock.json");
if (!isNewer(licenses, dependencies) || !isNewer(licenses, fileURLToPath(import.meta.url))) await bundle();
for (const file of readdirSync(dist, { recursive: true })) {
  if (file.endsWith(".js") && !file.startsWith("vendor")) loadFromVendor(file);
}

async function bundle() {
  const build = await rolldown({
    cwd: root,
    platform: "node",
    input: Object.fromEntries(ENTRIES.map((entry) => [entry, entry in USED ? `used:${entry}` : entry])),
    treeshake: { moduleSideEffects: [{ test: /@kubernetes\/client-node/, sideEffects: false }] },
    plugins: [
      {
        name: "used",
        resolveId: (id) => (id.startsWith("used:") ? id : undefined),
        load(id) {
          const library = id.slice("used:".length);
          return id.startsWith("used:") ? `export { ${USED[library].join(", ")} } from "${library}";` : undefined;
        },
      },
    ],
  });
  const { output } = await build.write({
    dir: vendor,
    format: "cjs",
    exports: "named",
    esModule: true,
    comments: false,
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name].js",
  });
  for (const { fileName, code } of output) if (code) writeFileSync(path.join(vendor, fileName), oneByte(code));
  writeFileSync(licenses, licensesOf(output.flatMap(({ moduleIds = [] }) => moduleIds)));
}

/** The same code: one character beyond Latin-1 makes V8 keep all of a file with two bytes for each. */
function oneByte(code) {
  return code.replace(/[^\0-\xff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function isNewer(file, other) {
  return existsSync(file) && statSync(file).mtimeMs > statSync(other).mtimeMs;
}

/** The licenses of all packages that these modules are of. */
function licensesOf(modules) {
  const folders = modules.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []);
  const texts = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
    return `${name} ${version}\n\n${file ? readFileSync(path.join(folder, file), "utf8").trim() : license}\n`;
  });
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}

/** @throws Error for what is used of a library and left out of its bundle */
function loadFromVendor(file) {
  const compiled = readFileSync(path.join(dist, file), "utf8");
  const code = compiled.replaceAll(/require\("([^".][^"]*)"\)/g, (call, library) => {
    if (!ENTRIES.includes(library)) return call;
    const target = path.posix.relative(path.dirname(file), `vendor/${library}.js`);
    return `require("${target}")`;
  });
  if (code === compiled) return;
  for (const [library, names] of Object.entries(USED)) {
    const variable = new RegExp(`const (\\w+) = require\\("[./]+vendor/${library}\\.js"\\)`).exec(code)?.[1];
    const used = variable === undefined ? [] : [...code.matchAll(new RegExp(`\\b${variable}\\.(\\w+)`, "g"))];
    const missing = used.find(([, name]) => !names.includes(name));
    if (missing) throw new Error(`${file} uses ${missing[1]} of ${library}: add it to USED in tools/bundle.mjs`);
  }
  writeFileSync(path.join(dist, file), code);
}
