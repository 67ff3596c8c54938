import fs from "node:fs";
import path from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { runCommand } from "../../src/cli/program";
import { captureOutput } from "../captured-output";
import { useDirectory } from "../directories";

const directory = useDirectory();
afterEach(() => vi.restoreAllMocks());

/** What a command prints, and its exit code. */
async function run(...words: string[]): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const printed = captureOutput();
  return { exitCode: await runCommand(words), ...printed };
}

describe("kindstack install --print", () => {
  it("prints what deploy/install.yaml holds", async () => {
    const { exitCode, stdout } = await run("install", "--print", "--set", "postgresTables=");

    expect(exitCode).toBe(0);
    // When this fails: npx kindstack install --print --set postgresTables= > deploy/install.yaml
    expect(stdout).toBe(fs.readFileSync(path.resolve(__dirname, "../../deploy/install.yaml"), "utf8"));
  });

  it("obeys --set, more than once", async () => {
    const { stdout } = await run("install", "--print", "--set", "namespace=ops", "--set", "postgresTables=a,b=c.*");

    expect(stdout).toContain("namespace: ops\n");
    expect(stdout).toMatch(/name: KINDSTACK_POSTGRES_TABLES\n +value: a,b=c\.\*\n/);
  });

  it.each([["--print"], ["--chart"], ["--check"]])(
    "demands with %s that the tables of PostgresWriters are named, where that kind is installed",
    async (option) => {
      const chart = path.join(directory, "chart");
      const { exitCode, stdout, stderr } = await run("install", option, ...(option === "--chart" ? [chart] : []));
      expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
      expect(stderr).toMatch(
        /kindstack:postgresTables: must be set, as postgreswriters\.demo\.yash\.com is among the kinds/,
      );
      expect(fs.existsSync(chart)).toBe(false);
      if (option === "--print") expect((await run("install", option, "--kinds", "podsets")).exitCode).toBe(0);
    },
  );

  it("takes the keys of a file, of any type, under those of --set", async () => {
    const file = path.join(directory, "values.yaml");
    const given = "namespace: ops\nreplicas: 2\nimage: a\nbackendFromSecret: true\nkinds: [podsets]\nstorageClass:\n";
    fs.writeFileSync(file, `${given}serviceAccountAnnotations: { example.com/role: r }\n`);
    const { stdout } = await run("install", "--print", "--values", file, "--set", "image=b");

    for (const line of ["namespace: ops\n", "replicas: 2\n", "example.com/role: r\n", "image: b\n"]) {
      expect(stdout).toContain(line);
    }
    expect(stdout.match(/kind: CustomResourceDefinition/g)).toHaveLength(1 + 2); // plans and approvals
    fs.writeFileSync(file, "image: [");
    expect(await run("install", "--print", "--values", file)).toMatchObject({ exitCode: 2, stdout: "" });
    fs.writeFileSync(file, "imag: b\n");
    const { stderr } = await run("install", "--print", "--values", file);
    expect(stderr).toContain("imag is not a key of the configuration");
  });

  it("says which value it refuses, and prints nothing", async () => {
    const stderr = 'kindstack: kindstack:logLevel: "loud" must be one of trace, debug, info, warn, error\n';
    expect(await run("install", "--print", "--set", "logLevel=loud")).toEqual({ exitCode: 1, stdout: "", stderr });
  });

  it.each([["install"], ["install", "--print", "--set", "namespace"], ["install", "--print", "--set", "install=true"]])(
    "refuses %j as wrong usage",
    async (...words) => {
      expect((await run(...words)).exitCode).toBe(2);
    },
  );

  it("describes the configuration in its help", async () => {
    expect((await run("install", "--help")).stdout).toMatch(/postgresTables +- +the tables that PostgresWriters may/);
  });
});

describe("kindstack crds", () => {
  it("prints the definitions of the chosen kinds alone", async () => {
    const { stdout } = await run("crds", "--kinds", "podsets,tenants.multitenancy");

    const kinds = ["tenants.multitenancy.codereliant.io", "podsets.batch.tutorial.kubebuilder.io"];
    const [plans, approvals] = ["plans.kindstack.dev", "approvals.kindstack.dev"];
    const modes = [...kinds, "namespaces.kindstack.dev"].map((name) => `mode.${name}`);
    const policies = [approvals, plans, ...modes, ...kinds.map((name) => `finalizer.${name}`)];
    const withBindings = policies.flatMap((policy) => [policy, policy]);
    const names = [...kinds, plans, approvals, ...withBindings].map((name) => `  name: ${name}`);
    expect(stdout.match(/^ {2}name: .*$/gm)).toEqual(names);
  });

  it("refuses a kind that does not exist, as wrong usage", async () => {
    expect(await run("crds", "--kinds", "tenants")).toMatchObject({ exitCode: 2, stdout: "" });
  });
});

it("kindstack stack-name prints the name of each object's own stack", async () => {
  const samples = ["tenant", "podset"].map((kind) =>
    path.resolve(__dirname, "../../stacks/kinds", kind, "sample.yaml"),
  );

  expect((await run("stack-name", ...samples)).stdout).toMatch(
    /^tenant\.tenant-sample-[0-9a-f]{19}\npodset\.default\.podset-sample-[0-9a-f]{19}\n$/,
  );
});
