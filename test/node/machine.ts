import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import path from "node:path";

/** Programs of the machine, and the Debian package of each. */
const PROGRAMS: Readonly<Record<string, string>> = {
  unshare: "util-linux",
  setpriv: "util-linux",
  ip: "iproute2",
  iptables: "iptables",
  ip6tables: "iptables",
  ipset: "ipset",
  conntrack: "conntrack",
  runc: "runc",
  mount: "mount",
  tar: "tar",
  kubectl: "kubernetes-client",
  busybox: "busybox-static",
};
/** All that the node has of its own; each ends with the process that was started in it. */
export const NAMESPACES = [
  ...["--mount", "--net", "--uts", "--ipc", "--pid"],
  ...["--fork", "--kill-child", "--mount-proc"],
];
const CNI_PLUGINS = "/usr/lib/cni";
/** The controllers without which no container is limited. */
const CONTROLLERS = ["cpu", "cpuset", "memory", "pids"];

/** What this machine lacks to be a node: why, and what to do. Empty when it can be one. */
export function shortcomings(): string[] {
  const packages = missingPackages();
  return [
    ...(process.platform === "linux" ? cgroupShortcomings() : [`it is ${process.platform}; a node needs Linux`]),
    ...(process.getuid?.() === 0 ? namespaceShortcomings() : ["you are not root: run it with sudo"]),
    ...(isOnPath("go") ? [] : ["Go is missing, which builds the node's programs: https://go.dev/doc/install"]),
    ...(packages.length > 0
      ? [`packages are missing: apt-get install --no-install-recommends ${packages.join(" ")}`]
      : []),
  ];
}

/** The Debian packages that are missing. */
export function missingPackages(): string[] {
  const programs = Object.entries(PROGRAMS).filter(([program]) => !isOnPath(program));
  const missing = new Set(programs.map(([, name]) => name));
  if (!existsSync(path.join(CNI_PLUGINS, "bridge"))) missing.add("containernetworking-plugins");
  return [...missing].sort();
}

function namespaceShortcomings(): string[] {
  if (isOnPath("unshare") && spawnSync("unshare", [...NAMESPACES, "true"]).status !== 0)
    return ["it lets root make no namespaces: a container needs --privileged"];
  spawnSync("modprobe", ["--all", "br_netfilter", "overlay"]); // they may be a part of the kernel, or loaded
  const lacks = [
    ...(existsSync("/proc/sys/net/bridge") ? [] : ["br_netfilter"]),
    ...(readFileSync("/proc/filesystems", "utf8").includes("\toverlay\n") ? [] : ["overlay"]),
  ];
  return lacks.map((name) => `its kernel lacks ${name}: modprobe ${name}`);
}

function cgroupShortcomings(): string[] {
  const there =
    cgroupVersion() === 2
      ? readFileSync("/sys/fs/cgroup/cgroup.controllers", "utf8").split(/\s+/)
      : CONTROLLERS.filter((name) => existsSync(`/sys/fs/cgroup/${name}`));
  const missing = CONTROLLERS.filter((name) => !there.includes(name));
  if (missing.length > 0) return [`it has no cgroup controllers ${missing.join(", ")} at /sys/fs/cgroup`];
  try {
    accessSync("/sys/fs/cgroup", constants.W_OK);
    return [];
  } catch {
    return ["/sys/fs/cgroup is read-only: a container needs --privileged"];
  }
}

export function cgroupVersion(): 1 | 2 {
  return existsSync("/sys/fs/cgroup/cgroup.controllers") ? 2 : 1;
}

function isOnPath(program: string): boolean {
  return (process.env.PATH ?? "").split(path.delimiter).some((folder) => existsSync(path.join(folder, program)));
}
