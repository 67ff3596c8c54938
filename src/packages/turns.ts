/** Whose turn it is. */
export interface Turn {
  object: string;
  /** Whether other calls for the object may run meanwhile, which an update waits for before it ends. */
  isShared: boolean;
}

interface Waiting {
  turn: Turn;
  isUrgent: boolean;
  start: () => void;
}

/** Lets one call after another have something for itself, or those of one object's update. */
export class Turns {
  #holder: Turn | undefined;
  #held = 0;
  #waiting: Waiting[] = [];

  /** Whether a call for an object would have to wait. */
  isTaken(object: string): boolean {
    return this.#holder !== undefined && !(this.#holder.isShared && this.#holder.object === object);
  }

  /** @param isUrgent before others that are not. @returns whether it is the first of its turn */
  async take(turn: Turn, isUrgent: boolean): Promise<{ isFirst: boolean; end(): void } & Disposable> {
    if (this.isTaken(turn.object)) {
      await new Promise<void>((start) => {
        const index = isUrgent ? this.#waiting.findIndex((other) => !other.isUrgent) : -1;
        this.#waiting.splice(index === -1 ? this.#waiting.length : index, 0, { turn, isUrgent, start });
      });
    } else {
      this.#holder ??= turn;
    }
    this.#held++;
    let isOver = false;
    const end = () => {
      if (!isOver) this.#release();
      isOver = true;
    };
    return { isFirst: this.#held === 1, end, [Symbol.dispose]: end };
  }

  #release(): void {
    if (--this.#held > 0) return;
    const [next, ...others] = this.#waiting;
    this.#holder = next?.turn;
    this.#waiting = others.filter(({ turn }) => this.isTaken(turn.object));
    next?.start();
    for (const other of others) if (!this.#waiting.includes(other)) other.start();
  }
}
