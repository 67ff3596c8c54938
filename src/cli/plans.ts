import { Command } from "commander";
import { kubeconfigNamespace, withKubernetes } from "../../providers/kubernetes/connection";
import { findKind } from "../../stacks/contract/kind-name";
import type { Plan } from "../../stacks/contract/plan";
import { approvalWords } from "../plan/contents";
import { planReport, planTitle } from "../preview/report";
import { safeJson, visible } from "../text/plain-text";
import { renderTable } from "../text/table";
import { KIND_HELP, type KindsOption, kindsOption, kindsWith } from "./kinds-option";
import { findPlan, readPlans } from "./read-plans";
import { type OutputFormat, outputOption, RENDERERS, type ReportFormat, reportFormat } from "./write-output";

/** Of a digest, as much as names it among others; `--group` takes as much. */
const SHOWN_DIGEST = "sha256:".length + 12;

export function plansCommand(): Command {
  return new Command("plans")
    .description("show what waits for an approval, in all namespaces")
    .option("-n, --namespace <namespace>", "plans in this namespace alone")
    .option("--group", "one line for all objects with the same difference", false)
    .addOption(outputOption())
    .addHelpText("after", "\nExamples:\n  kindstack plans\n  kindstack plans --group\n  kindstack plans -n team-a")
    .action(async ({ namespace, group, output }: { namespace?: string; group: boolean; output: OutputFormat }) => {
      const plans = await withKubernetes((client) => readPlans(client, namespace));
      const none = `no plans${namespace === undefined ? "" : ` in the namespace ${namespace}`}`;
      const text = () => (plans.length === 0 ? none : group ? groupTable(groupsOf(plans)) : planTable(plans));
      const json = () => safeJson(group ? groupsOf(plans) : plans.map(planRow));
      process.stdout.write(`${output === "json" ? json() : text()}\n`);
    });
}

interface CommandOptions extends KindsOption {
  namespace?: string;
  output: ReportFormat;
}

export function planCommand(): Command {
  return new Command("plan")
    .description("show what the plan of an object does, and how to approve it")
    .argument("<kind>", KIND_HELP)
    .argument("<name>", "the object's name")
    .option("-n, --namespace <namespace>", "the object's namespace (default: the kubeconfig's)")
    .addOption(reportFormat())
    .addOption(kindsOption("kinds to choose from"))
    .addHelpText(
      "after",
      `
Example:
  kindstack plan podsets web -n team-a`,
    )
    .action(async (word: string, name: string, options: CommandOptions, command: Command) => {
      const kind = findKind(kindsWith(command, options, word), word);
      const namespace = options.namespace ?? kubeconfigNamespace();
      const plan = await withKubernetes((client) => findPlan(client, kind, { name, namespace }));
      const report = RENDERERS[options.output](planReport(kind, plan)).trimEnd();
      const approve = `\n\nTo approve it: kindstack approve ${visible(approvalWords(kind, plan))}`;
      process.stdout.write(`${report}${options.output === "text" ? approve : ""}\n`);
    });
}

function planRow({ metadata, spec, status }: Plan) {
  const { object, digest, group, cause, actions } = spec;
  return { plan: metadata.name, namespace: metadata.namespace, object, digest, group, cause, actions, ...status };
}

export function planTable(plans: readonly Plan[]): string {
  const rows = plans.map((plan) => {
    const { actions, cause, digest } = plan.spec;
    return [planTitle(plan), changesOf(actions), plan.status.state, cause.reason, cause.at, shortDigest(digest)];
  });
  return renderTable(["object", "changes", "state", "cause", "since", "digest"], rows);
}

/** All plans with the same difference; the largest group first. */
function groupsOf(plans: readonly Plan[]) {
  const groups = [...Map.groupBy(plans, ({ spec }) => spec.group)].map(([group, members]) => {
    const [{ spec: first }] = members as [Plan, ...Plan[]];
    const states = [...Map.groupBy(members, ({ status }) => status.state)];
    return {
      group,
      plans: members.length,
      kind: first.object.kind,
      states: Object.fromEntries(states.map(([state, some]) => [state, some.length])),
      actions: first.actions, // of each object
      causes: [...new Set(members.map(({ spec }) => spec.cause.reason))],
      since: first.cause.at,
      objects: members.map(planTitle),
    };
  });
  return groups.sort((a, b) => b.plans - a.plans);
}

function groupTable(groups: ReturnType<typeof groupsOf>): string {
  const rows = groups.map(({ group, plans, kind, actions, states, causes, since, objects }) => {
    const counts = Object.entries(states).map(([state, count]) => `${count} ${state}`);
    const [changes, shown] = [changesOf(actions), shortDigest(group)];
    return [shown, plans, kind, changes, counts.join(", "), causes.join(", "), since, objects[0] ?? ""];
  });
  return renderTable(["group", "objects", "kind", "changes of each", "states", "cause", "since", "such as"], rows);
}

/** `1 update, 2 delete` */
function changesOf(actions: Plan["spec"]["actions"]): string {
  const counts = Object.entries(actions).filter(([, count]) => count > 0);
  return counts.map(([action, count]) => `${count} ${action}`).join(", ") || "none";
}

function shortDigest(digest: string): string {
  return digest.slice(0, SHOWN_DIGEST);
}
