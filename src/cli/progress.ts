import type { Ora } from "ora";
import type { ToolEvent } from "../toolchain/tool";

const STILL_THERE_SECONDS = 30;

interface Step {
  text: string;
  detail: string;
  startedAt: number;
  /** `about 3 min`; empty when it is not known. */
  estimate: string;
  timer: NodeJS.Timeout;
  spinner: Ora | undefined;
}

/** A line that changes, on a terminal; `undefined` elsewhere. */
export function startSpinner(text: string, stream: NodeJS.WriteStream = process.stderr): Ora | undefined {
  const isTerminal = stream.isTTY && stream.columns > 0; // it needs a width
  if (!isTerminal) return undefined;
  const { default: ora } = require("ora") as typeof import("ora"); // to load it takes 20 ms
  const color = stream.hasColors() ? "cyan" : false; // which NO_COLOR decides as well, and ora does not ask
  return ora({ stream, discardStdin: false, text, color }).start();
}

/**
 * Shows the current step and its duration: on a terminal in one changing line; elsewhere in a line at the start, every
 * 30 seconds, and at the end of a long step.
 */
export class Progress {
  #step: Step | undefined;

  constructor(private readonly stream: NodeJS.WriteStream = process.stderr) {}

  /** Begins a step; the one before it is done. */
  begin(text: string, estimatedSeconds?: number): void {
    this.done();
    const estimate = estimatedSeconds === undefined ? "" : `about ${duration(estimatedSeconds)}`;
    const spinner = startSpinner(text, this.stream);
    const timer = setInterval(() => this.#show(), spinner ? 1_000 : STILL_THERE_SECONDS * 1_000);
    this.#step = { text, detail: "", startedAt: Date.now(), estimate, timer, spinner };
    if (!spinner) this.#write(estimate ? `${text} (${estimate})` : text);
  }

  detail(text: string): void {
    if (this.#step === undefined) return;
    this.#step.detail = text;
    if (this.#step.spinner) this.#show();
    else this.#write(`  ${text}`);
  }

  /** Writes a line; the step continues. */
  note(line: string): void {
    const spinner = this.#step?.spinner;
    spinner?.clear();
    this.#write(line);
    spinner?.render();
  }

  done(): void {
    this.#end((step, seconds) => {
      const text = `${step.text}${seconds >= 1 ? ` (${duration(seconds)})` : ""}`;
      if (step.spinner) step.spinner.succeed(text);
      else if (step.estimate) this.#write(`${step.text}: done after ${duration(seconds)}`);
    });
  }

  /** Ends the step, as failed; does nothing when there is none. */
  fail(reason?: string): void {
    this.#end((step) => {
      const text = reason === undefined ? step.text : `${step.text}: ${reason}`;
      if (step.spinner) step.spinner.fail(text);
      else this.#write(`${text}${reason === undefined ? ": failed" : ""}`);
    });
  }

  /** Shows the search for a tool; a tool that is found at once gets no line. */
  readonly observeTools = (event: ToolEvent): void => {
    const name = `${event.tool.name} ${event.tool.version}`;
    if (event.type === "waiting") this.begin(`${name}: waiting for another process that is making it`);
    else if (event.type === "making") this.begin(`${name}: ${event.source.label}`, event.source.estimatedSeconds);
    else if (event.type === "failed") this.fail(event.reason);
    else this.done();
  };

  #show(): void {
    const step = this.#step;
    if (step === undefined) return;
    const { estimate, detail, spinner } = step;
    const time = `${duration(secondsSince(step.startedAt))}${estimate && ` of ${estimate}`}`;
    const text = `${step.text}${detail && `: ${detail}`} (${time})`;
    if (spinner) spinner.text = text;
    else this.#write(`still: ${text}`);
  }

  #end(say: (step: Step, seconds: number) => void): void {
    const step = this.#step;
    if (step === undefined) return;
    this.#step = undefined;
    clearInterval(step.timer);
    say(step, secondsSince(step.startedAt));
  }

  #write(line: string): void {
    this.stream.write(`${line}\n`);
  }
}

/** In whole seconds. */
export function secondsSince(milliseconds: number): number {
  return Math.round((Date.now() - milliseconds) / 1000);
}

/** `45 s`, `3 min`, `3 min 5 s`. */
export function duration(seconds: number): string {
  const [minutes, rest] = [Math.floor(seconds / 60), seconds % 60];
  if (minutes === 0) return `${rest} s`;
  return rest === 0 ? `${minutes} min` : `${minutes} min ${rest} s`;
}
