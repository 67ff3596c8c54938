import { LeaseConflict, type LeaseRecord, type LeaseStore } from "../../src/sharding/lease-store";

/** Leases in memory: compare-and-swap as the API server does it, and failures on request. */
export class LeaseMemory implements LeaseStore {
  readonly #records = new Map<string, LeaseRecord>();
  #versions = 0;
  /** What the next write does instead: `before` it takes effect or `after`, the caller hears of no answer. */
  failNext: "before" | "after" | undefined;
  /** Whether it cannot be reached at all. */
  down = false;

  get(name: string): LeaseRecord | undefined {
    return this.#records.get(name);
  }

  /** Who holds each shard: the replica's name, without what is made up for each session. */
  holders(): Record<number, string | undefined> {
    const shards = [...this.#records.values()].filter(({ name }) => name.startsWith("kindstack-shard-"));
    return Object.fromEntries(
      shards
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .map(({ name, holder }) => [Number(name.split("-").at(-1)), holder?.split("-")[2]]),
    );
  }

  sessions(): string[] {
    return [...this.#records.keys()].filter((name) => name.startsWith("kindstack-replica-")).sort();
  }

  async list(): Promise<LeaseRecord[]> {
    this.#refuse();
    return [...this.#records.values()];
  }

  async create(name: string, change: Parameters<LeaseStore["create"]>[1]): Promise<LeaseRecord> {
    return this.#write(name, undefined, change);
  }

  async update(record: LeaseRecord, change: Parameters<LeaseStore["update"]>[1]): Promise<LeaseRecord> {
    return this.#write(record.name, record.version, change);
  }

  async remove({ name, uid }: LeaseRecord): Promise<void> {
    this.#refuse();
    if (this.#records.get(name)?.uid === uid) this.#records.delete(name);
  }

  #write(name: string, version: string | undefined, change: Parameters<LeaseStore["create"]>[1]): LeaseRecord {
    this.#refuse();
    const failure = this.failNext;
    this.failNext = undefined;
    if (failure === "before") throw new Error("no answer");
    const present = this.#records.get(name);
    if (present?.version !== version) throw new LeaseConflict(name);
    const record: LeaseRecord = {
      name,
      uid: present?.uid ?? `uid-${++this.#versions}`,
      version: String(++this.#versions),
      holder: change.holder,
      transitions: change.transitions ?? present?.transitions ?? 0,
      shards: change.shards,
    };
    this.#records.set(name, record);
    if (failure === "after") throw new Error("no answer");
    return record;
  }

  #refuse(): void {
    if (this.down) throw new Error("not reachable");
  }
}
