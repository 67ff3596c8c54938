import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { parse } from "yaml";
import { freePort } from "../../src/dev/ports";
import { kinds } from "../../stacks/index";
import { declaredObjects } from "../../stacks/up/objects";
import { TestDatabase } from "../providers/postgres/database";
import { type Block, blocksOf, Reader } from "./documentation";
import { apply, namespace, remove, tenant } from "./objects";
import { build, filesUnder } from "./operator";

const ROOT = path.resolve(__dirname, "../..");
const MAIN = path.join(ROOT, "dist/src/cli/main.js");
const PAGES = fs.readdirSync(path.join(ROOT, "docs")).filter((file) => file.endsWith(".md"));
/** What the pages' commands call for, besides what Kindstack itself needs. */
const PROGRAMS = ["bash", "kubectl", "git", "jq", "curl", "openssl", "psql"];
const missing = PROGRAMS.filter((program) => spawnSync("which", [program]).status !== 0);

/** Placeholders, and what they are here. */
type Substitutions = Record<string, string>;

/** A block may go through all stacks with one process after the other. */
const BLOCK_TIMEOUT_MS = 180_000;

/** Follows all blocks of a page, or of a section of it, in order; each is a test. */
function followPage(
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

describe("the documentation", () => {
  it("has commands in blocks that are run, or say why they cannot be", () => {
    const pages = ["README.md", ...PAGES.map((page) => `docs/${page}`)];
    const languages = new Set(pages.flatMap(blocksOf).map(({ language }) => language));
    expect([...languages].sort()).toEqual(["", "diff", "sh", "ts", "yaml"]); // the first is the drawing
    for (const page of PAGES) expect(FOLLOWED, `${page} is followed by a test below`).toContain(page);
    const commands = blocksOf("README.md").filter(({ language, notRun }) => language === "sh" && notRun === undefined);
    expect([...new Set(commands.map(({ section }) => section))]).toEqual(README_SECTIONS);
  });

  it("shows objects that their kinds take", async () => {
    const shown = blocksOf("README.md").filter(({ language }) => language === "yaml");
    const manifests = shown.map(({ text, line }) => ({ manifest: parse(text), file: `README.md:${line}` }));

    expect(await declaredObjects(manifests, kinds, "any")).toHaveLength(kinds.length);
  });

  it.each(["README.md", ...PAGES.map((page) => `docs/${page}`)])("has links that lead somewhere: %s", (page) => {
    const text = fs.readFileSync(path.join(ROOT, page), "utf8");
    const links = [...text.matchAll(/\]\(([^)#:]*)(?:#([^)]*))?\)/g)].map(([, file = "", anchor]) => ({
      file,
      anchor,
    }));
    const broken = links.filter(({ file, anchor }) => {
      const target = file === "" ? path.join(ROOT, page) : path.resolve(ROOT, path.dirname(page), file);
      if (!fs.existsSync(target)) return true;
      return anchor !== undefined && !anchorsOf(fs.readFileSync(target, "utf8")).includes(anchor);
    });
    expect(broken).toEqual([]);
  });

  it("explains each reason that a condition can have", () => {
    const page = fs.readFileSync(path.join(ROOT, "docs/troubleshooting.md"), "utf8");
    const reasons = reasonsInCode();
    expect(reasons).toEqual(expect.arrayContaining(["Conflict", "TableMissing", "Locked", "Paused", "UnknownKind"]));
    expect(reasons.filter((reason) => !page.includes(`\`${reason}\``))).toEqual([]);
  });
});

function anchorsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}

/** The reasons of all errors that are thrown anywhere, and those that conditions have when nothing failed. */
function reasonsInCode(): string[] {
  const code = ["src", "providers", "stacks"]
    .flatMap((folder) => filesUnder(path.join(ROOT, folder)))
    .filter((file) => file.endsWith(".ts"))
    .map((file) => [path.relative(ROOT, file), fs.readFileSync(file, "utf8")] as const);
  const patterns = [
    /\b(?:Terminal|Retryable|Api)Error\(\s*(?:\d+,\s*)?"(\w+)"/g,
    /\bretryable\("(\w+)"/g,
    /\breason(?:: | = |: \w+ \? )"([A-Z]\w+)"/g,
    /"[0-9A-Z]{2,5}": "([A-Z]\w+)"/g,
    /\bE[A-Z_]+: "([A-Z]\w+)"/g,
    /\? "\w+" : (?:\w+ \? "\w+" : )?"([A-Z][a-z]+[A-Z]\w+)"/g,
  ];
  const found = code
    .filter(([file]) =>
      /^(providers|src\/(watcher|automation|config)|stacks\/\w[\w-]*\/(status|schema|kind|objects|register|manifests|main))/.test(
        file,
      ),
    )
    .flatMap(([, text]) => patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, reason = ""]) => reason)));
  const kinds = new Set([
    "Namespaced",
    "Background",
    "Foreground",
    "Warning",
    "Normal",
    "Orphaned",
    "Repaired",
    "Updated",
  ]);
  return [...new Set(found)].filter((reason) => !kinds.has(reason)).sort();
}

const README_SECTIONS = [
  "Try it",
  "On your own cluster",
  "Preview in a pull request",
  "Install with Pulumi or kubectl",
];
const FOLLOWED = [
  "admission.md",
  "benchmarks.md",
  "capsule.md",
  "install.md",
  "operate.md",
  "preview-in-ci.md",
  "proxy.md",
  "reliability.md",
  "scale.md",
  "troubleshooting.md",
  "write-a-kind.md",
];

describe.skipIf(missing.length > 0)(`a reader (${missing.join(", ") || "nothing"} is missing)`, () => {
  beforeAll(build);

  describe("of README.md who tries it", () => {
    const reader = new Reader();
    beforeAll(() => reader.open(MAIN, { KUBE_EDITOR: "sed -i s/admin@yourdomain.com/ops@yourdomain.com/" }));
    afterAll(async () => {
      await reader.run("npx kindstack dev stop");
      await reader.close();
    });

    followPage("README.md", reader, undefined, "Try it");

    it("has nothing running any more", async () => {
      await expect(reader.run("npx kindstack dev status")).rejects.toThrow("nothing runs there");
    });
  });

  describe("of README.md", () => {
    const reader = new Reader();
    const folders = { lib: path.join(reader.directory, "lib"), passphrase: path.join(reader.directory, "passphrase") };
    const { PSQL_HOST, PSQL_DBNAME, PSQL_USER, PSQL_PASSWORD } = inject("cluster").env;
    beforeAll(async () => {
      await reader.open(MAIN);
      await reader.run(`mkdir ${folders.lib}
        openssl rand -base64 24 > ${folders.passphrase}`);
    });
    afterAll(async () => {
      await reader.run(`kubectl delete tenant.multitenancy/acme postgreswriter/sample-student --timeout=60s
        kubectl delete namespace kindstack-system
        kubectl delete clusterrole,clusterrolebinding kindstack`);
      await reader.close();
    });

    followPage(
      "README.md",
      reader,
      () => ({
        "PSQL_HOST=db.example.com": `PSQL_HOST=${PSQL_HOST}`,
        "PSQL_DBNAME=app": `PSQL_DBNAME=${PSQL_DBNAME}`,
        "PSQL_USER=kindstack": `PSQL_USER=${PSQL_USER}`,
        "PSQL_PASSWORD=secret": `PSQL_PASSWORD=${PSQL_PASSWORD}`,
        "/var/lib/kindstack": folders.lib,
        "/run/secrets/passphrase": folders.passphrase,
      }),
      "On your own cluster",
    );

    it("makes the objects that the page shows", async () => {
      const objects = blocksOf("README.md").filter(({ text }) => /^ {2}name: (acme|sample-student)$/m.test(text));
      for (const { text } of objects) {
        await reader.run(`mkdir -p manifests
          cat >> manifests/objects.yaml <<'END'\n---\n${text}END`);
      }
      await reader.run(`kubectl apply -f manifests/
        kubectl wait --for=condition=Ready tenant.multitenancy/acme postgreswriter/sample-student --timeout=60s
        git init --quiet
        git add .
        git -c user.name=a -c user.email=a@example.com commit --quiet -m before
        git update-ref refs/remotes/origin/main HEAD`);
    });
    followPage("README.md", reader, undefined, "Preview in a pull request");
    followPage("README.md", reader, undefined, "Install with Pulumi or kubectl");
  });

  describe("of install.md", () => {
    const state = new TestDatabase(inject("cluster").env);
    const reader = new Reader();
    const { PSQL_HOST, PSQL_DBNAME, PSQL_USER, PSQL_PASSWORD } = inject("cluster").env;
    beforeAll(async () => {
      await state.open();
      await reader.open(MAIN);
      fs.cpSync(path.join(ROOT, "stacks/tenant/sample.yaml"), path.join(reader.home, "stacks/tenant/sample.yaml"));
    });
    afterAll(async () => {
      await reader.close();
      await state.close();
    });

    followPage("docs/install.md", reader, () => ({
      "postgres://kindstack:secret@db.example.com:5432/state": state.backendUrl(),
      "PSQL_HOST=db.example.com": `PSQL_HOST=${PSQL_HOST}`,
      "PSQL_DBNAME=app": `PSQL_DBNAME=${PSQL_DBNAME}`,
      "PSQL_USER=kindstack": `PSQL_USER=${PSQL_USER}`,
      "PSQL_PASSWORD=secret": `PSQL_PASSWORD=${PSQL_PASSWORD}`,
      // Nothing is built and installed again by a test.
      "npm ci\n": "",
    }));
  });

  describe("of admission.md and capsule.md", () => {
    const reader = new Reader();
    beforeAll(async () => {
      await reader.open(MAIN, { PULUMI_BACKEND_URL: `file://${reader.directory}/state` });
      await reader.run(`mkdir -p ${reader.directory}/state stacks
        ln -s ${ROOT}/stacks/capsule-tenant stacks/capsule-tenant
        operator start run --install-crds --admission-port 0`);
    });
    afterAll(async () => {
      await reader.run(`kubectl delete tenants.capsule oil --ignore-not-found --timeout=60s
        kubectl delete clusterrole,clusterrolebinding kindstack-bind --ignore-not-found
        kubectl delete namespace oil-staging --ignore-not-found --timeout=60s
        operator stop
        kubectl delete mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings,clusterroles,clusterrolebindings -l kindstack.dev/admission`);
      await reader.close();
    });

    followPage("docs/admission.md", reader);
    followPage("docs/capsule.md", reader);
  });

  describe("of operate.md", () => {
    const reader = new Reader();
    const folders = { lib: path.join(reader.directory, "lib"), etc: path.join(reader.directory, "etc") };
    const [acme, globex] = [
      tenant("acme", { namespaces: ["acme-dev"] }),
      tenant("globex", { namespaces: ["globex-dev"] }),
    ];
    beforeAll(async () => {
      await reader.open(MAIN, { PULUMI_BACKEND_URL: `file://${folders.lib}/state` });
      await reader.run(`mkdir -p ${folders.lib}/state ${folders.etc}
        openssl rand -base64 24 > ${folders.etc}/passphrase
        npx kindstack install --print | kubectl apply --server-side -f -
        kubectl create secret generic kindstack-state -n kindstack-system --from-file=${folders.etc}/passphrase
        operator deploy`);
      await Promise.all([acme, globex].map(apply));
      await reader.run(
        "kubectl wait --for=condition=Ready tenant.multitenancy/acme tenant.multitenancy/globex --timeout=60s",
      );
    });
    afterAll(async () => {
      await reader.run(`kubectl delete tenants.multitenancy --all --timeout=60s
        kubectl delete namespace globex-dev --wait=false
        kubectl delete namespace kindstack-system
        kubectl delete clusterrole,clusterrolebinding kindstack`);
      await reader.close();
    });

    followPage("docs/operate.md", reader, () => ({
      "/var/lib/kindstack": folders.lib,
      "/etc/kindstack": folders.etc,
    }));

    it("has one operator at the end that works on the restored state with the new passphrase", async () => {
      const history = await reader.run("npx kindstack history tenant.multitenancy acme");
      expect(JSON.parse(history)[0]).toMatchObject({ kind: "update", result: "succeeded" });
      expect(await reader.run("echo $PULUMI_BACKEND_URL")).toContain("/restored");
    });
  });

  describe("of preview-in-ci.md", () => {
    const reader = new Reader();
    beforeAll(async () => {
      await reader.open(MAIN, {
        PULUMI_BACKEND_URL: `file://${reader.directory}/state`,
        PULUMI_CONFIG_PASSPHRASE: "secret",
      });
      await reader.run(`mkdir -p manifests ${reader.directory}/state
        operator start run --install-crds
        cp ${ROOT}/stacks/tenant/sample.yaml manifests/tenant.yaml
        kubectl apply -f manifests/tenant.yaml
        kubectl wait --for=condition=Ready tenant.multitenancy/tenant-sample --timeout=60s
        git init --quiet
        git add .
        git -c user.name=a -c user.email=a@example.com commit --quiet -m before
        git update-ref refs/remotes/origin/main HEAD
        sed -i s/admin@yourdomain.com/other@yourdomain.com/ manifests/tenant.yaml`);
    });
    afterAll(async () => {
      await reader.run(
        "kubectl delete tenants.multitenancy --all --timeout=60s; kubectl delete -f preview-access.yaml",
      );
      await reader.close();
    });

    followPage("docs/preview-in-ci.md", reader);

    it("has a report on what the pull request changes", () => {
      const report = fs.readFileSync(path.join(reader.home, "preview.md"), "utf8");
      expect(report).toContain("tenant-sample");
      expect(report).toContain("other@yourdomain.com");
    });
  });

  describe("of proxy.md", () => {
    const reader = new Reader();
    const ports = { "9443": "", "8081": "" };
    beforeAll(async () => {
      await reader.open(MAIN);
      for (const port of ["9443", "8081"] as const) ports[port] = String(await freePort());
    });
    afterAll(async () => {
      await reader.run(`if [ -f proxy.pid ]; then kill "$(cat proxy.pid)" 2>/dev/null || true; fi
        kubectl delete -f tenant.yaml --ignore-not-found --wait=false
        kubectl delete csr alice --ignore-not-found
        kubectl delete secret kindstack-proxy-tls -n default --ignore-not-found`);
      await reader.close();
    });

    followPage("docs/proxy.md", reader, () => ports);
  });

  describe("of troubleshooting.md", () => {
    const reader = new Reader();
    beforeAll(async () => {
      await reader.open(MAIN, {
        PULUMI_BACKEND_URL: `file://${reader.directory}/state`,
        PULUMI_CONFIG_PASSPHRASE: "secret",
      });
      await reader.run(`mkdir ${reader.directory}/state
        operator start run --install-crds
        printf 'name: kindstack\\nruntime: nodejs\\n' > Pulumi.yaml`);
      await apply(tenant("acme", { namespaces: ["acme-dev"] }));
      await reader.run("kubectl wait --for=condition=Ready tenant.multitenancy/acme --timeout=60s");
    });
    afterAll(async () => {
      await reader.close();
      await remove(namespace("acme-dev"));
    });

    followPage("docs/troubleshooting.md", reader);
  });

  describe("of write-a-kind.md", () => {
    const reader = new Reader();
    beforeAll(async () => {
      await reader.open(path.join(reader.home, "dist/src/cli/main.js"), {
        PULUMI_BACKEND_URL: `file://${reader.directory}/state`,
        PULUMI_CONFIG_PASSPHRASE: "secret",
      });
      const tracked = ["src", "providers", "stacks", "test", "bench", "deploy", "package.json", "vitest.config.mts"];
      for (const file of [...tracked, "tsconfig.json", "tsconfig.build.json"]) {
        fs.cpSync(path.join(ROOT, file), path.join(reader.home, file), { recursive: true });
      }
      fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(reader.home, "node_modules"));
      fs.mkdirSync(path.join(reader.directory, "state"));
    });
    afterAll(async () => {
      await reader.run("kubectl delete crd notices.example.com --ignore-not-found");
      await reader.close();
    });

    followPage("docs/write-a-kind.md", reader);

    it("has given the operator the rights that the kind calls for", () => {
      expect(fs.readFileSync(path.join(reader.home, "deploy/install.yaml"), "utf8")).toMatch(
        /configmaps[\s\S]*notices|notices[\s\S]*configmaps/,
      );
    });
  });
});
