import fs from "node:fs";
import { execa } from "execa";
import { node, onlyPod } from "./installation";

/** The first process of the operator's container, as this namespace of processes numbers it. */
export async function operatorPid(): Promise<number> {
  const { status } = await onlyPod();
  const id = status.containerStatuses?.[0]?.containerID.replace("containerd://", "") ?? "";
  const [command = "", ...args] = node.ctr;
  const { stdout } = await execa(command, [...args, "tasks", "ls"]);
  const line = stdout.split("\n").find((text) => text.startsWith(id));
  return Number(line?.split(/\s+/)[1]);
}

/** Its children: the engine. */
export function childrenOf(pid: number): number[] {
  return fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((child) => {
      try {
        const [, afterName = ""] = /\) (.*)$/s.exec(fs.readFileSync(`/proc/${child}/stat`, "utf8")) ?? [];
        return Number(afterName.split(" ")[1]) === pid;
      } catch {
        return false; // it has ended meanwhile
      }
    });
}

/** Whether a Pod's process could connect: what its NetworkPolicies allow. */
export async function canConnect(pid: number, host: string, port: number): Promise<boolean> {
  const script = `
    const socket = require("node:net").connect({ host: ${JSON.stringify(host)}, port: ${port}, timeout: 3000 });
    socket.on("connect", () => process.exit(0)).on("timeout", () => process.exit(1)).on("error", () => process.exit(1));`;
  const { exitCode } = await execa("nsenter", ["--net", "--target", String(pid), process.execPath, "-e", script], {
    reject: false,
  });
  return exitCode === 0;
}

/** Of a component of the cluster, by the file of its program. */
export function componentPid(program: string): number {
  const found = fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .find((pid) => {
      try {
        return fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")[0]?.endsWith(`/${program}`);
      } catch {
        return false;
      }
    });
  if (found === undefined) throw new Error(`${program} does not run`);
  return Number(found);
}

/** What a cgroup of version 1 or 2 says of the Pod's memory, in bytes. */
export function podMemory(uid: string): number {
  const files = [
    `/sys/fs/cgroup/memory/${node.cgroup}/kubepods/burstable/pod${uid}/memory.usage_in_bytes`,
    `/sys/fs/cgroup/${node.cgroup}/kubepods/burstable/pod${uid}/memory.current`,
  ];
  const file = files.find((name) => fs.existsSync(name));
  if (file === undefined) throw new Error(`no cgroup of Pod ${uid}`);
  return Number(fs.readFileSync(file, "utf8"));
}
