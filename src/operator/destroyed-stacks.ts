import type { Logger } from "pino";
import { errorMessageOf } from "../../providers/errors";
import type { StackEngine } from "../automation/engine";

/** Objects that are deleted together are told of together. */
const GATHER_MS = 50;

/**
 * Has the backend forget that stacks were destroyed, as their objects are gone. What it does not forget, because the operator
 * ends, is forgotten after a month.
 */
export class DestroyedStacks {
  #stacks: string[] = [];
  #flushed: Promise<void> | undefined;

  constructor(
    private readonly engine: Pick<StackEngine, "forgetDestroyed">,
    private readonly logger: Logger,
  ) {}

  add(stack: string): void {
    this.#stacks.push(stack);
    this.#flushed ??= new Promise<void>((resolve) => setTimeout(resolve, GATHER_MS)).then(() => this.#flush());
  }

  /** Resolves when the backend was told of all of them. */
  async ended(): Promise<void> {
    await this.#flushed;
  }

  async #flush(): Promise<void> {
    const stacks = this.#stacks;
    this.#stacks = [];
    this.#flushed = undefined;
    try {
      await this.engine.forgetDestroyed(stacks);
    } catch (error) {
      const reason = errorMessageOf(error);
      this.logger.info({ stacks: stacks.length, reason }, "failed to remove what tells of destroyed stacks");
    }
  }
}
