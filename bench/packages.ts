import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pino from "pino";
import { declaredBy } from "../providers/registration";
import { packageRoot } from "../src/package";
import { Packages } from "../src/packages/packages";
import { type AnyKind, parseServed } from "../stacks/contract/kind";
import type { KindObject } from "../stacks/contract/object";
import { runProgram } from "../stacks/contract/run-program";
import { loadKinds } from "../stacks/kinds/catalog";
import type { BenchContext } from "./cluster";
import { treeCpuSeconds } from "./processes";
import { atMost, type Section } from "./results";

const FULL = { updates: 4_000, rounds: 3 };
const QUICK = { updates: 200, rounds: 1 };
const FIRST_UPDATES = 100;
const IDLE_MS = 500;

const CODE = `
const { defineKind, Type } = require("kindstack");
const { KubernetesObject } = require("kindstack/providers/kubernetes");
exports.note = defineKind({
  group: "bench.example.com", version: "v1", kind: "Note", plural: "notes", singular: "note", scope: "Namespaced",
  description: "", columns: [], owns: [{ apiVersion: "v1", kind: "ConfigMap" }], directory: __dirname,
  spec: Type.Object({ text: Type.String() }), status: Type.Object({ length: Type.Integer() }),
  validate({ spec }) { if (spec.text === "") throw new Error("spec.text: is empty"); },
  report: ({ spec }) => ({ length: spec.text.length }),
  program({ metadata: { name, namespace }, spec: { text } }, { owner }) {
    new KubernetesObject("note", { owner, manifest: { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data: { text } } });
  },
});
`;

/** What it costs that the code of a kind runs in a process of its package. */
export async function packages({ quick, detail }: BenchContext): Promise<Section> {
  const { updates, rounds } = quick ? QUICK : FULL;
  const directory = await fs.mkdtemp(path.join(os.tmpdir(), "kindstack-bench-package-"));
  const served = new Packages({
    limits: { timeoutMs: 60_000, memoryMib: 256, writable: [], addons: false },
    idleMs: IDLE_MS,
    environment: process.env,
    logger: pino({ level: "silent" }),
  });
  try {
    const folder = path.join(directory, "note");
    await fs.mkdir(folder);
    await fs.writeFile(path.join(folder, "index.js"), CODE);
    await fs.symlink(path.join(packageRoot, "node_modules"), path.join(directory, "node_modules"));
    const [own] = loadKinds([folder]).kinds;
    const [remote] = (await served.load([folder])).kinds;
    if (own === undefined || remote === undefined) throw new Error("the package has no kind");
    const figures: { own: number; remote: number }[] = [];
    await cpuMsOf(remote, FIRST_UPDATES);
    const pss = await pssMiB(served.pids[0]);
    await cpuMsOf(own, updates / 4); // compiled by then
    await cpuMsOf(remote, updates / 4);
    for (let round = 1; round <= rounds; round++) {
      detail(`round ${round}`);
      figures.push({ own: await cpuMsOf(own, updates), remote: await cpuMsOf(remote, updates) });
    }
    const more = figures.map((figure) => figure.remote - figure.own).sort((a, b) => a - b);
    const grown = await pssMiB(served.pids[0]);
    await delay(4 * IDLE_MS);
    return {
      id: "packages",
      title: "The process of a package of kinds",
      notes: [
        `Of ${updates} updates, ten at a time, what the operator asks of a kind's code: validate twice, program and report. In its own process, and in that of a package. CPU time is that of both processes.`,
        "Memory is what the process has for itself, and its share of what it has with others.",
      ],
      figures: [
        {
          what: "CPU time of an update, more than in the operator's process",
          value: more[Math.floor(more.length / 2)] ?? Number.NaN,
          range: [more[0] ?? Number.NaN, more.at(-1) ?? Number.NaN],
          unit: "ms",
          mark: atMost(0.5),
        },
        {
          what: `memory of the first package's process, after ${FIRST_UPDATES} updates`,
          value: pss,
          unit: "MiB",
          mark: atMost(60),
        },
        { what: "the same, after all of them", value: grown, unit: "MiB" },
        { what: "processes at rest", value: served.pids.length, unit: "count", mark: atMost(0) },
      ],
    };
  } finally {
    served.close();
    await fs.rm(directory, { recursive: true });
  }
}

/** CPU time of one update, of this process and its children. */
async function cpuMsOf(kind: AnyKind, updates: number): Promise<number> {
  const before = await treeCpuSeconds(process.pid);
  let next = 0;
  const work = async () => {
    while (next < updates) await update(kind, next++);
  };
  await Promise.all(Array.from({ length: 10 }, work));
  return (((await treeCpuSeconds(process.pid)) - before) / updates) * 1000;
}

async function update(kind: AnyKind, index: number): Promise<void> {
  const metadata = {
    name: `note-${index}`,
    namespace: "default",
    uid: `${index}`,
    resourceVersion: "1",
    generation: 1,
  };
  const object = { apiVersion: "bench.example.com/v1", kind: "Note", metadata, spec: { text: "a text" } };
  const parsed: KindObject = await parseServed(kind, object);
  const owner = { uid: metadata.uid, description: "Note" };
  await declaredBy(() => runProgram(kind, parsed, { owner, owned: [], recorded: new Set(), watched: [] }));
  await kind.report(await parseServed(kind, object), []);
}

/** Memory that a process has for itself, and its share of what it has with others. */
async function pssMiB(pid: number | undefined): Promise<number> {
  const text = await fs.readFile(`/proc/${pid}/smaps_rollup`, "utf8");
  return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? Number.NaN) / 1024;
}
