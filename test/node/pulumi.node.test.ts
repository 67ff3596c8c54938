import fs from "node:fs";
import path from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../../src/testing/eventually";
import { areReady, KINDS, kubectl, NAMESPACE, node, onlyPod, PASSPHRASE } from "./installation";
import { blocksOf } from "./pages";
import { reportTimes, type StepTime, timed } from "./times";

/* `pulumi up` in the project's root, with Pulumi's own plugin for Kubernetes, by the commands of docs/install.md. */

const ROOT = path.resolve(__dirname, "../..");
const project = path.join(node.directory, "pulumi");
/** What the page says to set, and the update. */
const commands = commandsOfPage();
const times: StepTime[] = [];

beforeAll(() => {
  const built = path.resolve(path.dirname(node.cli), "../../.."); // where the image was compiled, from this clone
  fs.mkdirSync(path.join(project, "state"), { recursive: true });
  fs.copyFileSync(path.join(ROOT, "Pulumi.yaml"), path.join(project, "Pulumi.yaml"));
  for (const entry of ["package.json", "dist", "node_modules"]) {
    fs.symlinkSync(path.join(built, entry), path.join(project, entry));
  }
});
afterAll(async () => {
  await kubectl(`delete namespace ${NAMESPACE} --ignore-not-found`);
  for (const type of ["crds", "validatingadmissionpolicies", "validatingadmissionpolicybindings"]) {
    await kubectl(`delete ${type} -l app.kubernetes.io/part-of=kindstack`);
  }
});

/** Runs commands of the page in the project's root, as a reader would who answers yes. */
async function shell(script: string): Promise<string> {
  const sdk = path.join(project, "node_modules/@pulumi/pulumi"); // a CLI that is built needs a program of it
  const { stdout } = await execa("bash", ["-euo", "pipefail", "-c", script], {
    cwd: project,
    env: {
      KUBECONFIG: node.kubeconfig,
      PATH: [...node.pulumi, sdk, path.dirname(process.execPath), process.env.PATH].join(path.delimiter),
      PULUMI_HOME: path.join(project, "home"),
      PULUMI_BACKEND_URL: `file://${path.join(project, "state")}`,
      PULUMI_CONFIG_PASSPHRASE: PASSPHRASE,
      PULUMI_SKIP_CONFIRMATIONS: "true",
      PULUMI_SKIP_UPDATE_CHECK: "true",
      PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
    },
  });
  return stdout;
}

it("installs the operator, and its first object is Ready", async () => {
  await timed(times, "pulumi stack init, pulumi config set", () => shell(commands.configure));
  await timed(times, "pulumi up", () => shell(commands.update));
  await timed(times, "the first object: kubectl apply, kubectl wait", async () => {
    await kubectl(["apply", "-f", path.join(ROOT, "stacks/kinds/tenant/sample.yaml")]);
    await areReady(["tenants.multitenancy.codereliant.io/tenant-sample"]);
  });
  reportTimes("With pulumi up", times);

  expect((await onlyPod()).status.containerStatuses?.map(({ restartCount }) => restartCount)).toEqual([0]);
});

it("changes nothing the second time", async () => {
  expect(await shell("pulumi up --expect-no-changes")).toContain("unchanged");
});

it("is destroyed with its state, and leaves the CRDs and the policies for modes", async () => {
  const staying =
    "get crds,validatingadmissionpolicies -o name -l app.kubernetes.io/part-of=kindstack,!kindstack.dev/admission";
  const before = await kubectl(staying);
  await kubectl(`delete ${KINDS.join(",")} --all -A`);
  await shell("pulumi config set kindstack:keepState false\npulumi up\npulumi destroy");

  expect(await kubectl(`get namespace ${NAMESPACE} --ignore-not-found`)).toBe("");
  expect(await kubectl("get clusterroles,rolebindings -A -o name -l app.kubernetes.io/part-of=kindstack")).toBe("");
  const admission = "mutatingwebhookconfigurations,validatingadmissionpolicies,clusterroles";
  await eventually(async () => expect(await kubectl(`get ${admission} -o name -l kindstack.dev/admission`)).toBe(""));
  expect(before).toContain("customresourcedefinition");
  expect(await kubectl(staying)).toBe(before);
});

/** The page's, with this cluster's database and the passphrase that its state already has. */
function commandsOfPage(): { configure: string; update: string } {
  const lines = blocksOf("install.md", "sh", "pulumi stack init").trimEnd().split("\n");
  const written = lines.slice(0, -1).join("\n");
  const configure = written
    .replace("$(openssl rand -base64 24)", PASSPHRASE)
    .replace("postgres://kindstack:secret@db.example.com:5432/state", node.databaseUrl);
  if (!configure.includes(node.databaseUrl)) throw new Error("docs/install.md sets another backendUrl");
  return { configure, update: lines.at(-1) ?? "" };
}
