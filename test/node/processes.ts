import fs from "node:fs";
import { execa } from "execa";
import { node, onlyPod } from "./installation";
import { cgroupVersion } from "./machine";
import type { Worker } from "./worker";

/** The first process of the operator's container, as this namespace of processes numbers it. */
export async function operatorPid(): Promise<number> {
  const { spec, status } = await onlyPod();
  const id = status.containerStatuses?.[0]?.containerID.replace("containerd://", "") ?? "";
  const [command = "", ...args] = workerOf(spec.nodeName).ctr;
  const { stdout } = await execa(command, [...args, "tasks", "ls"]);
  const line = stdout.split("\n").find((text) => text.startsWith(id));
  if (id === "" || line === undefined) throw new Error("the operator's container does not run");
  return Number(line.split(/\s+/)[1]);
}

function workerOf(name: string): Worker {
  const found = node.workers.find((worker) => worker.name === name);
  if (found === undefined) throw new Error(`there is no node ${name}`);
  return found;
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

const SPARE_BYTES = 2 ** 20;

/** The memory of the operator's container. */
export interface ContainerMemory {
  /** What cannot be taken back, in bytes. */
  used: number;
  /** The most that it has had, with what can be taken back. */
  peak: number;
  /** How many of its processes the kernel has killed. */
  kills: number;
  limit(bytes: number): void;
  /** Limits it to little more than it uses. */
  squeeze(): void;
}

export async function operatorMemory(): Promise<ContainerMemory> {
  const { spec, metadata, status } = await onlyPod();
  const id = status.containerStatuses?.[0]?.containerID.replace("containerd://", "") ?? "";
  const isSecond = cgroupVersion() === 2;
  const below = `${workerOf(spec.nodeName).cgroup}/kubepods/burstable/pod${metadata.uid}/${id}`;
  const folder = isSecond ? `/sys/fs/cgroup/${below}` : `/sys/fs/cgroup/memory/${below}`;
  const number = (file: string, name: string) =>
    Number(new RegExp(`^${name} (\\d+)$`, "m").exec(fs.readFileSync(`${folder}/${file}`, "utf8"))?.[1]);
  const used = isSecond ? number("memory.stat", "anon") : number("memory.stat", "total_rss");
  const limit = (bytes: number) =>
    fs.writeFileSync(`${folder}/${isSecond ? "memory.max" : "memory.limit_in_bytes"}`, String(bytes));
  const squeeze = () => {
    // Version 1 refuses a limit that cannot be met; the kernel's own memory counts, too.
    for (let spare = SPARE_BYTES; ; spare *= 2) {
      try {
        return limit(used + spare);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EBUSY") throw error;
      }
    }
  };
  return {
    used,
    peak: Number(fs.readFileSync(`${folder}/${isSecond ? "memory.peak" : "memory.max_usage_in_bytes"}`, "utf8")),
    kills: isSecond ? number("memory.events", "oom_kill") : number("memory.oom_control", "oom_kill"),
    limit,
    squeeze,
  };
}
