import fs from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { cgroupVersion } from "./machine";

const ROOT = "/sys/fs/cgroup";

/** The folders of a cgroup: one for each hierarchy of version 1. */
export function cgroupFolders(name: string): string[] {
  if (cgroupVersion() === 2) return [path.join(ROOT, name)];
  const hierarchies = fs.readdirSync(ROOT, { withFileTypes: true });
  return hierarchies
    .filter((entry) => entry.isDirectory() && entry.name !== "unified")
    .map((entry) => path.join(ROOT, entry.name, name));
}

/** The cgroup below which kubelet makes those of its Pods. */
export function createCgroups(name: string): void {
  for (const folder of cgroupFolders(name)) {
    const parent = path.dirname(folder);
    // Version 2 gives a cgroup the controllers that its parent passes on.
    if (cgroupVersion() === 2)
      fs.writeFileSync(path.join(parent, "cgroup.subtree_control"), "+cpu +cpuset +memory +pids");
    fs.mkdirSync(folder, { recursive: true });
    // A new cpuset is empty, and no process may enter it.
    for (const file of ["cpuset.cpus", "cpuset.mems"]) {
      const inherited = path.join(parent, file);
      if (cgroupVersion() === 1 && fs.existsSync(inherited)) fs.copyFileSync(inherited, path.join(folder, file));
    }
  }
}

/** The processes in them have been killed; the kernel may need a moment to forget them. */
export async function removeCgroups(name: string): Promise<void> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const folders = cgroupFolders(name).filter((folder) => fs.existsSync(folder));
    if (folders.length === 0) return;
    for (const folder of folders) removeTree(folder);
    await delay(100);
  }
}

function removeTree(folder: string): void {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(path.join(folder, entry.name));
  }
  try {
    fs.rmdirSync(folder);
  } catch {} // busy: again later
}
