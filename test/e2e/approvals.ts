import fc from "fast-check";
import { pino } from "pino";
import { expect } from "vitest";
import type { LiveObject } from "../../providers/kubernetes/client";
import type { ObjectChange } from "../../src/cache/change";
import { InformerFactory } from "../../src/cache/informer-factory";
import { createMetrics } from "../../src/telemetry/metrics";
import { eventually } from "../../src/testing/eventually";
import type { Plan } from "../../stacks/contract/plan";
import { CONFIG_MAP } from "./manifests";
import { client } from "./objects";
import type { Proposals } from "./proposals";

/*
 * Random edits, drift, decisions, deletions and crashes, at once and one after the other. All that a watch shows of what was made
 * is compared with what was approved before: each text is of one edit, so that it tells which.
 */

const NAMES = ["a", "b", "c"];
const name = fc.constantFrom(...NAMES);

type Action =
  | { type: "edit"; name: string; extra: boolean }
  | { type: "editAlike" }
  | { type: "drift"; name: string }
  | { type: "approve"; name: string }
  | { type: "approveGroup"; name: string }
  | { type: "reject"; name: string }
  | { type: "remove"; name: string }
  | { type: "crash" }
  | { type: "pause"; ms: number };

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constant("edit" as const), name, extra: fc.boolean() }) },
  { weight: 2, arbitrary: fc.constant({ type: "editAlike" as const }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant("drift" as const), name }) },
  { weight: 8, arbitrary: fc.record({ type: fc.constant("approve" as const), name }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("approveGroup" as const), name }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("reject" as const), name }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("remove" as const), name }) },
  { weight: 1, arbitrary: fc.constant({ type: "crash" as const }) },
  { weight: 6, arbitrary: fc.record({ type: fc.constant("pause" as const), ms: fc.integer({ min: 0, max: 1500 }) }) },
);

/** Does this at random, and checks all that follows. @returns how many writes were seen */
export async function approvalsHold(proposals: Proposals, seed: number, count: number): Promise<number> {
  const watch = await Watch.open(proposals, seed);
  const [actions = []] = fc.sample(fc.array(action, { minLength: count, maxLength: count }), { seed, numRuns: 1 });
  try {
    for (const one of actions) await watch.act(one);
    await watch.finish();
  } finally {
    watch.close();
  }
  expect(watch.violations, `seed ${seed}`).toEqual([]);
  return watch.writes;
}

class Watch {
  readonly violations: string[] = [];
  writes = 0;
  readonly #proposals: Proposals;
  /** In all texts: approvals of another seed still hold, for the texts of that. */
  readonly #seed: number;
  /** What was there before is no write. */
  #listed = false;
  readonly #stop = new AbortController();
  /** The text of each state of an object, by UID and generation. */
  readonly #texts = new Map<string, string>();
  /** What may be written, and removed, of what was made. */
  readonly #allowed = new Set<string>();
  readonly #removable = new Set<string>();
  /** What this test itself has written. */
  readonly #drifted = new Set<string>();
  #count = 0;

  private constructor(proposals: Proposals, seed: number) {
    this.#proposals = proposals;
    this.#seed = seed;
  }

  static async open(proposals: Proposals, seed: number): Promise<Watch> {
    const watch = new Watch(proposals, seed);
    const logger = pino({ level: "silent" });
    const informers = new InformerFactory({ client, logger, relistIntervalMs: 1_800_000, metrics: createMetrics() });
    await informers.create(CONFIG_MAP, { onChange: (change) => watch.#changed(change) });
    await informers.start(watch.#stop.signal).synced;
    watch.#listed = true;
    return watch;
  }

  close(): void {
    this.#stop.abort();
  }

  async act(action: Action): Promise<void> {
    const proposals = this.#proposals;
    switch (action.type) {
      case "edit":
        return this.#edit([action.name], action.extra);
      case "editAlike":
        return this.#edit(NAMES, false);
      case "drift": {
        const text = `drift-${this.#seed}-${this.#count++}`;
        this.#drifted.add(text);
        return proposals.drift(action.name, { text }).catch(() => {}); // nothing was made
      }
      case "approve":
      case "approveGroup":
      case "reject":
        return this.#decide(action.name, action.type);
      case "remove":
        await proposals.owner.delete(proposals.type, action.name, proposals.namespace);
        return;
      case "crash":
        await proposals.operator.kill();
        return proposals.operator.start();
      case "pause":
        return new Promise((resolve) => setTimeout(resolve, action.ms));
    }
  }

  /** Everything is approved until all is as it is specified: no approval is lost. */
  async finish(): Promise<void> {
    for (const name of NAMES) {
      await eventually(async () => {
        await this.#decide(name, "approve");
        const [object, synced] = [await this.#proposals.find(name), await this.#proposals.synced(name)];
        if (object === undefined) return;
        const { text } = object.spec as { text: string };
        expect(synced).toMatchObject({ status: "True", observedGeneration: object.metadata.generation });
        expect((await this.#proposals.made(name))?.text).toBe(text);
      });
    }
  }

  async #edit(names: readonly string[], extra: boolean): Promise<void> {
    const text = `text-${this.#seed}-${this.#count++}`;
    await Promise.all(
      names.map(async (name) => {
        const written = await this.#proposals.write(name, { text, ...(extra && { extra }) }).catch(() => undefined);
        if (written !== undefined) this.#texts.set(stateOf(written.metadata), text);
      }),
    );
  }

  async #decide(name: string, decision: "approve" | "approveGroup" | "reject"): Promise<void> {
    const plan = await this.#proposals.plan(name);
    if (plan === undefined) return;
    if (decision === "reject") return this.#proposals.decide(plan, "Reject");
    const { group } = plan.spec;
    const plans = decision === "approve" ? [plan] : await this.#plansOf(group);
    for (const one of plans) this.#allow(one);
    const digests = plans.map(({ spec }) => spec.digest);
    await this.#proposals.decide(plan, "Approve", decision === "approve" ? {} : { digests });
  }

  async #plansOf(group: string): Promise<Plan[]> {
    const plans = await Promise.all(NAMES.map((name) => this.#proposals.plan(name)));
    return plans.filter((plan) => plan?.spec.group === group) as Plan[];
  }

  #allow({ spec: { object, steps } }: Plan): void {
    const text = this.#texts.get(stateOf(object));
    for (const { action, name } of steps) {
      if (action === "delete") this.#removable.add(name);
      else this.#allowed.add(`${name} ${text}`);
    }
  }

  #changed(change: ObjectChange): void {
    if (!this.#listed) return;
    const { metadata, data } = change.object as LiveObject & { data?: { text?: string } };
    if (metadata.namespace !== this.#proposals.namespace || !NAMES.includes(metadata.name.replace("-extra", "")))
      return;
    const text = data?.text ?? "";
    if (this.#drifted.has(text) && change.type === "modified") return;
    this.writes++;
    const isAllowed = change.type === "deleted" ? this.#removable.has(metadata.name) : this.#isAllowed(change, text);
    if (!isAllowed) this.violations.push(`${change.type} ${metadata.name} ${text}`);
  }

  #isAllowed(change: ObjectChange, text: string): boolean {
    const before =
      change.type === "modified" ? (change.previous as { data?: { text?: string } }).data?.text : undefined;
    return before === text || this.#allowed.has(`${change.object.metadata.name} ${text}`);
  }
}

function stateOf({ uid, generation }: { uid: string; generation?: number }): string {
  return `${uid} ${generation}`;
}
