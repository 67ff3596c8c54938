// Assembles the root directory of the operator's image from a compiled clone: what the Dockerfile does, and so what the
// tests run. Nothing else is in the image: no shell, no package manager.
//
//   node tools/image.mjs <folder>
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** What no operator needs: an optional compiler, and types. */
const OMITTED_PACKAGES = /^(typescript|@types\/.*)$/;
/** What is loaded neither by Node.js nor by a program that it starts. */
const OMITTED_FILES = [
  /\.(map|tsbuildinfo|flow|bare)$/,
  /\.[cm]?ts$/,
  /(^|\/)(?!licen[cs]e|notice|copying)[^/]*\.(md|markdown)$/i,
  /@opentelemetry\/[^/]+\/build\/(esm|esnext)$/, // the same again, as modules
];

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const requireFrom = createRequire(import.meta.url);
const image = path.resolve(process.argv[2] ?? usage());
if (existsSync(image) && readdirSync(image).length > 0) throw new Error(`${image} is not empty`);
const at = (file) => {
  const target = path.join(image, file);
  mkdirSync(path.dirname(target), { recursive: true });
  return target;
};
const lock = JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8"));
const packages = runtimePackages();
refuseMissingPackages();
const components = [...copyApp(), ...copySystem(), ...(await copyEngine())];
writeFileSync(at("app/sbom.cdx.json"), `${JSON.stringify(bom(components), null, 1)}\n`);

function usage() {
  console.error("usage: node tools/image.mjs <folder>");
  process.exit(2);
}

/**
 * The folders of all packages that are needed at run time: without those that are bundled, unless another one needs them.
 */
function runtimePackages() {
  const bundled = new Set(bundledPackages());
  const { dependencies } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
  const found = new Set();
  const add = (from, names) => {
    for (const name of names.filter((name) => !OMITTED_PACKAGES.test(name))) {
      const folder = resolvePackage(from, name);
      if (folder === undefined || found.has(folder)) continue; // an optional one, or one of another platform
      found.add(folder);
      const {
        dependencies = {},
        optionalDependencies = {},
        peerDependencies = {},
        peerDependenciesMeta = {},
      } = lock.packages[folder];
      const peers = Object.keys(peerDependencies).filter((peer) => !peerDependenciesMeta[peer]?.optional);
      add(folder, [...Object.keys(dependencies), ...Object.keys(optionalDependencies), ...peers]);
    }
  };
  add(
    "",
    Object.keys(dependencies).filter((name) => !bundled.has(name)),
  );
  return [...found].sort();
}

/** What tools/bundle.mjs has bundled: each file of dist/vendor is named after what is required. */
function bundledPackages() {
  const vendor = path.join(root, "dist/vendor");
  const files = readdirSync(vendor, { recursive: true }).filter((file) => file.endsWith(".js"));
  return files.map((file) => /^((?:@[^/]+\/)?[^/]+?)(?:\/.*)?\.js$/.exec(file)[1]);
}

/** @throws Error for a package that the compiled code loads and that is left out, as only a part of it is bundled */
function refuseMissingPackages() {
  const kept = new Set(packages.map((folder) => folder.slice("node_modules/".length)));
  for (const file of readdirSync(path.join(root, "dist"), { recursive: true })) {
    if (!file.endsWith(".js") || /^(vendor|bench)\//.test(file)) continue;
    const code = readFileSync(path.join(root, "dist", file), "utf8");
    for (const [, id, name] of code.matchAll(/\brequire\("((@[\w.-]+\/[\w.-]+|[\w:-][\w.-]*)[\w./-]*)"\)/g)) {
      if (isBuiltin(id) || kept.has(name) || OMITTED_PACKAGES.test(name) || name === lock.name) continue;
      throw new Error(`${file} loads ${id}, which is not in the image: add it to ENTRIES in tools/bundle.mjs`);
    }
  }
}

/** As Node.js looks packages up. */
function resolvePackage(from, name) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("node_modules/") - 1))) {
    const candidate = path.posix.join(folder, "node_modules", name);
    if (lock.packages[candidate] && existsSync(path.join(root, candidate))) return candidate;
    if (folder === "") return undefined;
  }
}

/** @returns the components of the bill of materials */
function copyApp() {
  const copy = (file, skips = () => false) =>
    cpSync(path.join(root, file), at(path.join("app", file)), {
      recursive: true,
      filter: (source) => !skips(source) && !OMITTED_FILES.some((pattern) => pattern.test(source)),
    });
  const inDist = path.join(root, "dist");
  copy("package.json");
  copy("LICENSE");
  copy("dist", (source) => source === path.join(inDist, "bench"));
  cpSync(path.join(root, "templates"), at("app/templates"), { recursive: true }); // TypeScript, to be filled in
  for (const folder of packages) {
    copy(folder, (source) => source.slice(path.join(root, folder).length).includes("/node_modules"));
  }
  // There is no /usr/bin/env to find Node.js with.
  const main = at("app/dist/src/cli/main.js");
  writeFileSync(main, readFileSync(main, "utf8").replace(/^#!.*/, "#!/usr/local/bin/node"));
  chmodSync(main, 0o755);
  symlinkSync("/app/dist/src/cli/main.js", at("usr/local/bin/kindstack"));

  const all = JSON.parse(execFileSync("npm", ["run", "--silent", "sbom"], { cwd: root, maxBuffer: 2 ** 26 }));
  const kept = new Set(packages);
  const bundled = new Set(
    [...readFileSync(path.join(inDist, "vendor/LICENSES.txt"), "utf8").matchAll(/^(\S+ \d\S*)$/gm)].map(
      ([, name]) => name,
    ),
  );
  return all.components.filter(
    ({ name, group, version, properties = [] }) =>
      properties.some(({ name, value }) => name === "cdx:npm:package:path" && kept.has(value)) ||
      bundled.has(`${group ? `${group}/` : ""}${name} ${version}`),
  );
}

/** Node.js, the C library that it is linked with, CAs, and a user's name. */
function copySystem() {
  const node = realpathSync(process.execPath);
  cpSync(node, at("usr/local/bin/node"));
  const nodeLicense = [path.resolve(node, "../../LICENSE"), "/usr/local/LICENSE"].find((file) => existsSync(file));
  if (nodeLicense) cpSync(nodeLicense, at("usr/share/doc/node/LICENSE"));
  const libraries = [...execFileSync("ldd", [node], { encoding: "utf8" }).matchAll(/(\/\S+) \(0x/g)].map(
    ([, file]) => file,
  );
  for (const file of libraries) cpSync(realpathSync(file), at(file));
  const certificates = "/etc/ssl/certs/ca-certificates.crt";
  if (!existsSync(certificates)) throw new Error(`there is no ${certificates}: apt-get install ca-certificates`);
  cpSync(certificates, at(certificates));
  writeFileSync(
    at("etc/passwd"),
    "root:x:0:0:root:/root:/sbin/nologin\nkindstack:x:65532:65532:kindstack:/tmp:/sbin/nologin\n",
  );
  writeFileSync(at("etc/group"), "root:x:0:\nkindstack:x:65532:\n");
  writeFileSync(at("etc/nsswitch.conf"), "hosts: files dns\n");
  cpSync(realpathSync("/etc/os-release"), at("etc/os-release"));
  mkdirSync(at("tmp"), { recursive: true });
  chmodSync(at("tmp"), 0o1777);
  return [
    {
      type: "application",
      name: "node",
      version: process.versions.node,
      purl: `pkg:generic/node@${process.versions.node}`,
    },
    ...debianPackages([...libraries, certificates]),
  ];
}

/** Scanners find the packages of these files in /var/lib/dpkg/status.d, as in a distroless image. */
function debianPackages(files) {
  const names = new Set(files.flatMap((file) => packageOf(file) ?? packageOf(realpathSync(file)) ?? []));
  names.add("ca-certificates");
  return [...names].sort().map((name) => {
    const status = execFileSync("dpkg-query", ["--status", name], { encoding: "utf8" });
    const version = /^Version: (.*)$/m.exec(status)[1];
    writeFileSync(at(`var/lib/dpkg/status.d/${name}`), status);
    const copyright = `/usr/share/doc/${name}/copyright`;
    if (existsSync(copyright)) cpSync(realpathSync(copyright), at(copyright));
    return { type: "library", name, version, purl: `pkg:deb/debian/${name}@${encodeURIComponent(version)}` };
  });
}

/** dpkg may know a file below /usr as one below / and the other way round. */
function packageOf(file) {
  for (const name of [file, file.replace(/^\/usr/, ""), `/usr${file}`]) {
    try {
      const stdout = execFileSync("dpkg-query", ["--search", name], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      });
      return /^([^:,]+)/.exec(stdout)[1];
    } catch {}
  }
  return undefined;
}

/** The one program beside Node.js. A Go program tells its modules. */
async function copyEngine() {
  const { resolveBinary } = requireFrom(path.join(root, "dist/src/toolchain/resolve.js"));
  const file = await resolveBinary("engine-clouds", {
    observe: ({ type, source }) =>
      type === "making" && console.error(`engine-clouds: ${source.label}, about ${source.estimatedSeconds} s`),
  });
  cpSync(realpathSync(file), at(`usr/local/bin/${path.basename(file)}`));
  const listed = execFileSync("go", ["version", "-m", file], { encoding: "utf8" });
  const modules = [...listed.matchAll(/^\t(?:dep|=>)\t(\S+)\t(\S+)/gm)];
  copyModuleLicenses(modules.map(([, name, version]) => `${name}@${version}`));
  return modules.map(([, name, version]) => ({
    type: "library",
    name,
    version,
    purl: `pkg:golang/${name}@${version}`,
  }));
}

/** Of all modules that are in the module cache; of a program that was downloaded, there are none. */
function copyModuleLicenses(modules) {
  const cache = execFileSync("go", ["env", "GOMODCACHE"], { encoding: "utf8" }).trim();
  for (const module of modules) {
    const folder = path.join(
      cache,
      module.replace(/[A-Z]/g, (letter) => `!${letter.toLowerCase()}`),
    );
    const files = existsSync(folder)
      ? readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
      : [];
    for (const file of files) cpSync(path.join(folder, file), at(`usr/share/doc/go/${module}/${file}`));
  }
}

function bom(components) {
  const { name, version } = lock;
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: { component: { type: "application", name, version } },
    components,
  };
}
