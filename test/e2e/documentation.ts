import { execFile, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { freePort } from "../../src/dev/ports";
import { resolveBinary } from "../../src/toolchain/resolve";
import { controlPlane } from "../control-plane";
import { type Block, blocksOf } from "./blocks";
import { uniqueName } from "./manifests";

export const ROOT = path.resolve(__dirname, "../..");

export const MAIN = path.join(ROOT, "dist/src/cli/main.js");
/** What the pages' commands call for, besides what Kindstack itself needs. */
const PROGRAMS = ["bash", "kubectl", "git", "jq", "curl", "openssl", "psql"];
export const missing = PROGRAMS.filter((program) => spawnSync("which", [program]).status !== 0);

/** Placeholders, and what they are here. */
type Substitutions = Record<string, string>;

/** A block may go through all stacks with one process after the other. */
const BLOCK_TIMEOUT_MS = 180_000;

/**
 * A reader of one page at a terminal: one shell, whose directory and variables last from block to block.
 *
 * Programs that a reader has and a test has not in that form are small scripts at the front of the PATH: `kindstack` and
 * `npx kindstack` run what is compiled, `kindstack run` stays in the background once it is ready, and, since the cluster
 * only simulates Pods, `kubectl` starts and stops the operator where the Deployment's Pod would.
 */
export class Reader {
  readonly directory = path.join(os.tmpdir(), uniqueName("kindstack-docs"));
  /** Where the shell is at first. */
  readonly home = path.join(this.directory, "home");
  readonly #bin = path.join(this.directory, "bin");
  #port = 0;

  /** @param main the compiled command line; it need not exist yet */
  async open(main: string, environment: Record<string, string> = {}): Promise<void> {
    fs.mkdirSync(this.home, { recursive: true });
    fs.mkdirSync(this.#bin);
    this.#port = await freePort();
    // As in the image: an operator with a home of its own would build the engine.
    fs.symlinkSync(await resolveBinary("engine"), path.join(this.#bin, "kindstack-engine"));
    fs.symlinkSync(await resolveBinary("pulumi"), path.join(this.#bin, "pulumi"));
    this.#program(
      "kindstack",
      `if [ "$1" = run ] && [ "\${2-}" != --help ]; then exec operator start "$@"; fi
exec "${process.execPath}" "${main}" "$@"`,
    );
    this.#program(
      "npx",
      `if [ "$1" = kindstack ]; then exec "$@"; fi
${WITHOUT_SHIMS}
exec npx "$@"`,
    );
    this.#program(
      "kubectl",
      `case " $* " in *" --replicas=0 "*) operator stop;; esac
(${WITHOUT_SHIMS}
exec kubectl "$@")
case " $* " in *" --replicas=1 "*|*" rollout status "*) operator deploy;; esac`,
    );
    this.#program("operator", OPERATOR.replaceAll("MAIN", `"${process.execPath}" "${main}"`));
    const variables = {
      ...controlPlane().env,
      KUBECONFIG: controlPlane().kubeconfig,
      KINDSTACK_WORK_DIR: path.join(this.directory, "work"),
      KINDSTACK_LOG_FORMAT: "json",
      PULUMI_HOME: path.join(this.directory, "pulumi"),
      PULUMI_SKIP_UPDATE_CHECK: "true",
      PATH: `${this.#bin}${path.delimiter}${process.env.PATH}`,
      DOCS_DIRECTORY: this.directory,
      DOCS_BIN: this.#bin,
      DOCS_PORT: String(this.#port),
      DOCS_POD_SCRIPT: path.join(__dirname, "pod.mjs"),
      ...environment,
    };
    fs.writeFileSync(
      path.join(this.directory, "session"),
      `cd '${this.home}'\n${Object.entries(variables)
        .map(([name, value]) => `export ${name}='${value}'\n`)
        .join("")}`,
    );
  }

  /** Does what a block says: writes a file, or runs the commands. @throws with all output, if one fails */
  async follow({ file, text }: Block): Promise<string> {
    if (file !== undefined)
      return this.run(`mkdir -p "$(dirname ${file})"\ncat > ${file} <<'END_OF_FILE'\n${text}END_OF_FILE`);
    return this.run(text.replaceAll("localhost:8080", `localhost:${this.#port}`));
  }

  run(commands: string): Promise<string> {
    const session = path.join(this.directory, "session");
    const script = `set -euo pipefail\n. '${session}'\n${commands}\n{ export -p; echo "cd '$PWD'"; } > '${session}'\n`;
    return new Promise((resolve, reject) => {
      const child = execFile("bash", ["-s"], { maxBuffer: 16 * 1024 * 1024 }, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else
          reject(
            new Error(`${commands}\n${stdout}${stderr}\nThe operator's log ends with:\n${this.#log().slice(-3000)}`),
          );
      });
      // A command may not take the rest of the script for its input.
      child.stdin?.end(`eval "$(cat <<'END_OF_SCRIPT'\n${script}END_OF_SCRIPT\n)" < /dev/null`);
    });
  }

  /** Stops the operator, if one runs, and removes everything. */
  async close(): Promise<void> {
    await this.run("operator stop").finally(() => fs.rmSync(this.directory, { recursive: true, force: true }));
  }

  #log(): string {
    const file = path.join(this.directory, "operator.log");
    return fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "";
  }

  #program(name: string, script: string): void {
    fs.writeFileSync(path.join(this.#bin, name), `#!/bin/bash\nset -eu\n${script}\n`, { mode: 0o755 });
  }
}

const WITHOUT_SHIMS = `PATH="\${PATH#"$DOCS_BIN:"}"`;

/**
 * `start ARGS…`: in the background, until it is ready. `deploy`: the same with the passphrase of the Secret, or, with
 * `DOCS_POD`, as the Deployment's Pod, which has nothing of the reader's. `stop`.
 */
const OPERATOR = `action="$1"; shift
pid="$DOCS_DIRECTORY/operator.pid"; log="$DOCS_DIRECTORY/operator.log"
waitFor() {
  for _ in $(seq 300); do
    if grep -q "$1" "$log"; then return 0; fi
    sleep 0.1
  done
  echo "the operator never said: $1" >&2; exit 1
}
case "$action" in
  stop)
    if [ ! -f "$pid" ]; then exit 0; fi
    kill "$(cat "$pid")" 2>/dev/null && waitFor "operator stopped"
    rm "$pid"; exit 0;;
  deploy)
    if [ "\${DOCS_POD-}" = true ]; then
      "$0" stop
      pod="$(node "$DOCS_POD_SCRIPT" "$DOCS_DIRECTORY" kindstack-system)"
      eval "$pod"
    else
    unset PULUMI_CONFIG_PASSPHRASE_FILE
    secret() { kubectl get secret kindstack-state -n kindstack-system -o jsonpath="{.data.$1}" | base64 -d; }
    export PULUMI_CONFIG_PASSPHRASE="$(secret passphrase)"
    url="$(secret backendUrl)"; export PULUMI_BACKEND_URL="\${url:-$PULUMI_BACKEND_URL}"
    export KINDSTACK_WORK_DIR="$(mktemp -d -p "$DOCS_DIRECTORY")"
    set -- run
    fi;;
esac
if [ -f "$pid" ]; then "$0" stop; fi
# Before it starts, so that what the last one said is not taken for this one's word.
: > "$log"
MAIN "$@" --http-port "$DOCS_PORT" >> "$log" 2>&1 < /dev/null &
echo $! > "$pid"
waitFor "caches are filled"`;

/** Follows all blocks of a page, or of a section of it, in order; each is a test. */
export function followPage(
  page: string,
  reader: Reader,
  substitutions: () => Substitutions = () => ({}),
  only?: string,
): void {
  const followed = blocksOf(page).filter(({ language, file, notRun, section }) => {
    return notRun === undefined && (language === "sh" || file !== undefined) && section === (only ?? section);
  });
  it.each(followed.map((block) => [`line ${block.line}: ${block.text.split("\n")[0]}`, block] as const))(
    "%s",
    { timeout: BLOCK_TIMEOUT_MS },
    async (_name, block) => {
      await reader.follow(substituted(block, substitutions()));
    },
  );

  it("has every placeholder that is filled in here", () => {
    const text = followed.map((block) => block.text).join();
    expect(Object.keys(substitutions()).filter((placeholder) => !text.includes(placeholder))).toEqual([]);
  });
}

function substituted(block: Block, substitutions: Substitutions): Block {
  const text = Object.entries(substitutions).reduce((text, [from, to]) => text.replaceAll(from, to), block.text);
  return { ...block, text };
}
