import fs from "node:fs";

export interface RunningProcess {
  pid: number;
  command: string;
}

/** The processes that were started with a text in their arguments. Linux only. */
export function processesOf(text: string): RunningProcess[] {
  return allProcesses().filter(({ command }) => command.includes(text));
}

/** The processes that a process started, those that wait for it to notice their end left out. Linux only. */
export function childrenOf(parent: number): RunningProcess[] {
  return allProcesses().filter(({ pid }) => parentOf(pid) === parent);
}

function allProcesses(): RunningProcess[] {
  return fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), command: read(Number(name), "cmdline").replaceAll("\0", " ").trim() }))
    .filter(({ command }) => command !== "");
}

function parentOf(pid: number): number {
  // The second field, the program's name in parentheses, may hold anything; the parent is the fourth.
  return Number(read(pid, "stat").split(") ").pop()?.split(" ")[1]);
}

/** Empty for a process that is gone by now. */
function read(pid: number, file: string): string {
  try {
    return fs.readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}
