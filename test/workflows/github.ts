import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";

/*
 * As much of GitHub as the workflows for pull requests need: events, labels, statuses, artifacts, and `gh api` on PATH. The workflow's
 * own expressions and scripts run.
 */

interface Step {
  name?: string;
  id?: string;
  run?: string;
  env?: Record<string, string>;
}

interface Workflow {
  env?: Record<string, string>;
  jobs: Record<string, { if?: string; steps: Step[] }>;
}

type Context = Record<string, unknown>;

/** The requests that the workflows make, answered from files; what they write is of the workflows' own user. */
const GH = `#!/usr/bin/env bash
set -eu
method=GET; filter=.; path=; context=
shift # api
while [ $# -gt 0 ]; do
  case "$1" in
    --method) method="$2"; shift ;;
    --jq) filter="$2"; shift ;;
    --raw-field) case "$2" in context=*) context="\${2#context=}" ;; esac; shift ;;
    --field) shift ;;
    --paginate | --silent) ;;
    *) path="$1" ;;
  esac
  shift
done
answer() { jq --raw-output "$filter"; }
case "$method $path" in
  "GET repos/o/r/commits/"*"/statuses") sha="\${path#repos/o/r/commits/}"; sha="\${sha%/statuses}"
    cat "$GITHUB_STATE/statuses/$sha" 2> /dev/null | jq --slurp . | answer ;;
  "POST repos/o/r/statuses/"*) sha="\${path##*/}"; count="$(cat "$GITHUB_STATE"/statuses/* 2> /dev/null | wc -l)"
    printf '{"id":%d,"context":"%s","creator":{"login":"github-actions[bot]"},"created_at":"%s"}\\n' \\
      "$count" "$context" "$(cat "$GITHUB_STATE/now")" >> "$GITHUB_STATE/statuses/$sha" ;;
  "DELETE repos/o/r/issues/1/labels/"*) rm "$GITHUB_STATE/labels/\${path##*/}" ;;
  "GET repos/o/r/issues/1/labels") ls "$GITHUB_STATE/labels" | jq --raw-input '{name: .}' | jq --slurp . | answer ;;
  "GET repos/o/r/issues/1/comments") echo '[]' | answer ;;
  "POST repos/o/r/issues/1/comments") ;;
  "GET repos/o/r/pulls/"*) cat "$GITHUB_STATE/pull.json" | answer ;;
  "GET repos/o/r/actions/artifacts/"*) echo "$path" > "$GITHUB_STATE/downloaded" ;;
  "GET repos/o/r/actions/artifacts?"*) cat "$GITHUB_STATE/artifacts.json" | answer ;;
  *) echo "no such request: $method $path" >&2; exit 1 ;;
esac
`;

export class GitHub {
  readonly #folder = mkdtempSync(join(tmpdir(), "kindstack-github-"));
  readonly #workflows = new Map<string, Workflow>();
  #now = 0;

  constructor() {
    for (const folder of ["labels", "statuses", "bin", "temp"]) mkdirSync(join(this.#folder, folder));
    writeFileSync(join(this.#folder, "bin/gh"), GH);
    chmodSync(join(this.#folder, "bin/gh"), 0o755);
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true });
  }

  get labels(): string[] {
    return readdirSync(join(this.#folder, "labels"));
  }

  label(name: string): void {
    this.write(`labels/${name}`, "");
  }

  unlabel(name: string): void {
    rmSync(join(this.#folder, "labels", name), { force: true });
  }

  /** A status by another than a workflow. */
  forge(commit: string, context: string): void {
    const status = { id: 1, context, creator: { login: "mallory" }, created_at: this.tick() };
    this.write(`statuses/${commit}`, `${JSON.stringify(status)}\n`);
  }

  /** Time passes: each event has its own. */
  tick(): string {
    const now = new Date(Date.UTC(2026, 0, 1) + ++this.#now * 60_000).toISOString();
    this.write("now", now);
    return now;
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.#folder, name), text);
  }

  read(name: string): string {
    return readFileSync(join(this.#folder, name), "utf8");
  }

  /** Runs a step by its name, with the job's environment, for an event. */
  run(file: string, job: string, name: string, context: Context) {
    const workflow = this.#workflow(file);
    const step = workflow.jobs[job]?.steps.find((one) => one.name === name);
    if (step?.run === undefined) throw new Error(`${file} has no step ${name}`);
    const outputs = join(this.#folder, "outputs");
    this.write("outputs", "");
    const own = Object.entries({ ...workflow.env, ...step.env }).map(([key, text]) => [key, expand(text, context)]);
    const env = {
      PATH: `${join(this.#folder, "bin")}:${process.env.PATH}`,
      ...{ GITHUB_STATE: this.#folder, GITHUB_OUTPUT: outputs, GITHUB_STEP_SUMMARY: "/dev/null", WAIT: "0" },
      RUNNER_TEMP: join(this.#folder, "temp"),
      ...Object.fromEntries(own),
    };
    const { status, stderr } = spawnSync("bash", ["--noprofile", "--norc", "-e", "-c", step.run], {
      ...{ env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] },
    });
    const lines = existsSync(outputs) ? readFileSync(outputs, "utf8").trim().split("\n") : [];
    return { status, stderr, outputs: Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2))) };
  }

  /** Whether a job runs for an event. */
  runs(file: string, job: string, context: Context): boolean {
    return Boolean(evaluate(this.#workflow(file).jobs[job]?.if ?? "true", context));
  }

  #workflow(file: string): Workflow {
    const known =
      this.#workflows.get(file) ?? (parse(readFileSync(join(__dirname, "../..", file), "utf8")) as Workflow);
    this.#workflows.set(file, known);
    return known;
  }
}

function expand(text: string, context: Context): string {
  return String(text).replace(/\$\{\{(.*?)\}\}/gs, (_, expression: string) =>
    String(evaluate(expression, context) ?? ""),
  );
}

/** GitHub's expressions, as far as the workflows use them: paths, texts, functions, and the operators of JavaScript. */
function evaluate(expression: string, context: Context): unknown {
  const at = (path: string) =>
    path.split(".").reduce<unknown>((value, key) => {
      if (key === "*") return value;
      if (Array.isArray(value)) return value.map((item) => (item as Context)[key]);
      return (value as Context | undefined)?.[key];
    }, context);
  const script = expression.replace(/'[^']*'|[a-z]\w*(?:\.[\w*]+)*(?=\()|[a-z]\w*(?:\.[\w*]+)+/gi, (word) => {
    return word.startsWith("'") || !word.includes(".") ? word : `at(${JSON.stringify(word)})`;
  });
  const functions = { cancelled: () => false, contains: (list: unknown[] = [], item: unknown) => list.includes(item) };
  return new Function("at", ...Object.keys(functions), `return (${script})`)(at, ...Object.values(functions));
}
