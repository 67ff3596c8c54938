import { Writable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Progress, startSpinner } from "../../src/cli/progress";
import { tools } from "../../src/toolchain/tools";

let lines: string[];
let progress: Progress;

beforeEach(() => {
  vi.useFakeTimers();
  lines = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk).trimEnd());
      done();
    },
  });
  progress = new Progress(stream as NodeJS.WriteStream);
});

afterEach(() => {
  vi.useRealTimers();
});

describe("progress where no one watches a terminal", () => {
  it("is a line at the start, one every 30 seconds, and one at the end of what is long", () => {
    progress.begin("etcd 3.6.10: go build", 90);
    vi.advanceTimersByTime(65_000);
    progress.done();

    expect(lines).toEqual([
      "etcd 3.6.10: go build (about 1 min 30 s)",
      "still: etcd 3.6.10: go build (30 s of about 1 min 30 s)",
      "still: etcd 3.6.10: go build (1 min of about 1 min 30 s)",
      "etcd 3.6.10: go build: done after 1 min 5 s",
    ]);
  });

  it("is no line about the end of what is short", () => {
    progress.begin("operator");
    progress.detail("starting");
    progress.done();

    expect(lines).toEqual(["operator", "  starting"]);
  });

  it("says what failed, and nothing more after that", () => {
    progress.begin("download");
    progress.fail("no answer");
    vi.advanceTimersByTime(60_000);
    progress.fail("again");

    expect(lines).toEqual(["download", "download: no answer"]);
  });

  it("ends when a tool is there that another process has made", () => {
    progress.observeTools({ type: "waiting", tool: tools.etcd });
    progress.observeTools({ type: "waited", tool: tools.etcd });

    expect(lines).toEqual([`etcd ${tools.etcd.version}: waiting for another process that is making it`]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("progress on a terminal", () => {
  it.each([
    [true, "cyan"],
    [false, false],
  ])("has a colour where the terminal shows colours, which NO_COLOR forbids: %s", (hasColors, color) => {
    const terminal = new Writable({ write: (_chunk, _encoding, done) => done() });
    const onTerminal = { isTTY: true, columns: 80, hasColors: () => hasColors, cursorTo() {}, clearLine() {} };
    const spinner = startSpinner("previewing", Object.assign(terminal, onTerminal) as never);
    spinner?.stop();

    expect(spinner?.color).toBe(color);
  });
});
