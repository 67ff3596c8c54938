import ora, { type Ora } from "ora";

const WIDTH = 20;

/** How far a preview is, in a line on a terminal that goes away at the end; nothing elsewhere. */
export class PreviewProgress {
  #spinner: Ora | undefined;

  constructor(stream: NodeJS.WriteStream = process.stderr) {
    if (stream.isTTY && stream.columns > 0) {
      this.#spinner = ora({ stream, discardStdin: false, text: "previewing" }).start();
    }
  }

  readonly show = (done: number, total: number): void => {
    if (this.#spinner === undefined) return;
    const filled = Math.round((done / total) * WIDTH);
    this.#spinner.text = `previewing ${"█".repeat(filled)}${"░".repeat(WIDTH - filled)} ${done} of ${total}`;
  };

  end(): void {
    this.#spinner?.stop();
    this.#spinner = undefined;
  }
}
