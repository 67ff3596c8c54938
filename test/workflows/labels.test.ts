import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GitHub } from "./github";

/*
 * A label of a pull request holds for the commit that had it when its preview was shown, in any order of events.
 */

const PREVIEW = ".github/workflows/preview.yml";
const APPROVE = ".github/workflows/approve.yml";
const [ALLOW, APPROVED] = ["allow-deletion", "approved"] as const;

/** A pull request, with what its people have seen. */
class PullRequest {
  readonly github = new GitHub();
  #commits = 1;
  #isOpen = true;
  readonly #shown = new Set<string>();
  /** The commits whose preview was shown when a person set a label. */
  readonly bound: Record<string, Set<string>> = { [ALLOW]: new Set(), [APPROVED]: new Set() };

  [Symbol.dispose](): void {
    this.github[Symbol.dispose]();
  }

  get head(): string {
    return `c${this.#commits}`;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  push(): void {
    this.#commits++;
    if (this.#isOpen) this.event("synchronize");
  }

  close(): void {
    this.#isOpen = false;
  }

  reopen(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.event("reopened");
  }

  label(name: string): void {
    if (this.github.labels.includes(name)) return;
    this.github.label(name);
    if (this.#shown.has(this.head)) this.bound[name]?.add(this.head);
    if (this.#isOpen) this.event("labeled", name);
    else this.bound[name]?.delete(this.head);
  }

  unlabel(name: string): void {
    this.github.unlabel(name);
  }

  /** The preview of the head ends; one that is cancelled before does nothing. */
  preview(): void {
    this.github.tick();
    this.github.write("temp/preview.md", "1 to update");
    const context = { ...this.context("synchronize"), steps: { merge: { outputs: { number: "1", head: this.head } } } };
    expect(this.github.run(PREVIEW, "preview", "Comment", context)).toMatchObject({ status: 0 });
    this.#shown.add(this.head);
  }

  /** What the gate of the head's preview fails on. */
  gate(): string | undefined {
    const context = { ...this.context("labeled"), steps: { merge: { outputs: { number: "1", head: this.head } } } };
    const { status, stderr, outputs } = this.github.run(PREVIEW, "preview", "See what the label allows", context);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    return outputs.gate;
  }

  /** Whether a merge of the head approves its plans. */
  approves(): boolean {
    const context = this.context("closed", undefined, true);
    if (!this.github.runs(APPROVE, "approve", context)) return false;
    return (
      this.github.run(APPROVE, "approve", "Check that the label is of the commit that was merged", context).status === 0
    );
  }

  event(action: string, label?: string): void {
    this.github.tick();
    const context = this.context(action, label);
    expect(this.github.runs(PREVIEW, "labels", context)).toBe(true);
    this.github.run(PREVIEW, "labels", "Bind labels to the commit", context);
  }

  context(action: string, label?: string, merged = false): Record<string, unknown> {
    const pull_request = {
      ...{ number: 1, merged, labels: this.github.labels.map((name) => ({ name })) },
      head: { sha: this.head, repo: { full_name: "o/r" } },
    };
    const event = { action, pull_request, ...(label !== undefined && { label: { name: label } }) };
    return {
      github: { event_name: "pull_request_target", repository: "o/r", token: "t", event },
      secrets: {},
      vars: {},
    };
  }
}

type Action = "push" | "close" | "reopen" | "preview" | "cancelled" | readonly ["label" | "unlabel", string];

const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof(
    fc.constantFrom<Action>("push", "close", "reopen", "preview", "preview", "cancelled"),
    fc.tuple(fc.constantFrom("label", "label", "unlabel"), fc.constantFrom(ALLOW, APPROVED)),
  ),
  { minLength: 3, maxLength: 8 },
);

function act(pullRequest: PullRequest, action: Action): void {
  if (action === "cancelled") return; // a run that does nothing: another event came first
  if (typeof action === "string") pullRequest[action]();
  else pullRequest[action[0]](action[1]);
}

describe("a label of a pull request", () => {
  it("allows what it is for on the commit that had it, and after nothing else", () => {
    let allowed = 0;
    fc.assert(
      fc.property(actions, (sequence) => {
        using pullRequest = new PullRequest();
        for (const action of sequence) act(pullRequest, action);
        const { head, github, bound } = pullRequest;
        const holds = (label: string) => github.labels.includes(label) && bound[label]?.has(head) === true;
        expect({ sequence, gate: pullRequest.gate() }).toEqual({
          sequence,
          gate: holds(ALLOW) ? "release" : "replace,delete,release",
        });
        expect({ sequence, approves: pullRequest.approves() }).toEqual({ sequence, approves: holds(APPROVED) });
        if (holds(ALLOW) || holds(APPROVED)) allowed++;
      }),
      { numRuns: 20, seed: 67 },
    );
    expect(allowed).toBeGreaterThan(0);
  }, 120_000);

  it("does not survive a commit that came while the pull request was closed", () => {
    using pullRequest = new PullRequest();
    for (const action of ["preview", ["label", ALLOW], ["label", APPROVED]] as const) act(pullRequest, action);
    expect([pullRequest.gate(), pullRequest.approves()]).toEqual(["release", true]);
    for (const action of ["close", "push"] as const) act(pullRequest, action);
    expect([pullRequest.gate(), pullRequest.approves()]).toEqual(["replace,delete,release", false]);
    act(pullRequest, "reopen");
    expect(pullRequest.github.labels).toEqual([]);
  });

  it("does not hold where the run that takes it off has not come to that", () => {
    using pullRequest = new PullRequest();
    for (const action of ["preview", ["label", ALLOW], "push"] as const) act(pullRequest, action);
    pullRequest.github.label(ALLOW);
    expect(pullRequest.gate()).toBe("replace,delete,release");
  });

  it("does not hold by a status that another has set", () => {
    using pullRequest = new PullRequest();
    pullRequest.github.forge(pullRequest.head, `kindstack/${ALLOW}`);
    pullRequest.github.label(ALLOW);
    expect(pullRequest.gate()).toBe("replace,delete,release");
  });

  it("approves the latest report that was there when it was set", () => {
    using pullRequest = new PullRequest();
    const { github } = pullRequest;
    act(pullRequest, "preview");
    const reports = [{ id: 1, expired: false, created_at: github.tick() }];
    act(pullRequest, ["label", APPROVED]);
    reports.push({ id: 2, expired: false, created_at: github.tick() });
    github.write("artifacts.json", JSON.stringify({ artifacts: reports }));
    const context = pullRequest.context("closed", undefined, true);
    const check = "Check that the label is of the commit that was merged";
    const { outputs } = github.run(APPROVE, "approve", check, context);
    expect(reports.filter(({ created_at }) => created_at <= (outputs.at ?? "")).map(({ id }) => id)).toEqual([1]);
    const steps = { label: { outputs } };
    github.run(APPROVE, "approve", "The report on the commit that was merged", { ...context, steps });
    expect(github.read("downloaded")).toBe("repos/o/r/actions/artifacts/1/zip\n");
  });
});

describe("the merge commit", () => {
  const find = (github: GitHub, event: object) =>
    github.run(PREVIEW, "preview", "Find the merge commit", {
      github: { repository: "o/r", token: "t", event },
    });

  it("is what is previewed of a pull request, as soon as it is of its head", () => {
    using github = new GitHub();
    const pull = { head: { sha: "c1" }, mergeable: true, merge_commit_sha: "m1" };
    github.write("pull.json", JSON.stringify(pull));
    const event = { pull_request: { number: 1, head: { sha: "c1" } } };
    expect(find(github, event)).toMatchObject({ status: 0, outputs: { number: "1", head: "c1", commit: "m1" } });
    for (const change of [{ mergeable: false }, { mergeable: null }, { head: { sha: "c0" } }]) {
      github.write("pull.json", JSON.stringify({ ...pull, ...change }));
      expect(find(github, event)).toMatchObject({ status: 1, outputs: {} });
    }
  });

  it("is a merge queue's own for a merge group, whose label is that of its pull request", () => {
    using github = new GitHub();
    github.write("pull.json", JSON.stringify({ head: { sha: "c1" }, mergeable: null }));
    const merge_group = { head_ref: "refs/heads/gh-readonly-queue/main/pr-12-5f2c", head_sha: "g1", base_sha: "b1" };
    expect(find(github, { merge_group })).toMatchObject({
      status: 0,
      outputs: { number: "12", head: "c1", commit: "g1" },
    });
  });
});
