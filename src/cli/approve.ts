import { readFile } from "node:fs/promises";
import { Command } from "commander";
import { Check } from "typebox/value";
import { review } from "../../providers/kubernetes/access-review";
import { isApiError, type KubernetesClient } from "../../providers/kubernetes/client";
import { kubeconfigNamespace, withKubernetes } from "../../providers/kubernetes/connection";
import {
  APPROVAL_TYPE,
  type Approval,
  type ApprovalSpec,
  type DecisionOnPlan,
  expiryOf,
  MAX_APPROVED_PLANS,
} from "../../stacks/contract/approval";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { findKind, kindOf } from "../../stacks/contract/kind-name";
import { objectKey } from "../../stacks/contract/object";
import type { Plan } from "../../stacks/contract/plan";
import { planReport, planTitle, reportSchema } from "../preview/report";
import { counted } from "../preview/wording";
import { readJson } from "../text/json";
import { visible } from "../text/plain-text";
import { confirm } from "./confirm";
import { allKinds, KIND_HELP, type KindsOption, kindsOption, kindsWith } from "./kinds-option";
import { duration } from "./parse-options";
import { planTable } from "./plans";
import { findPlan, readPlans } from "./read-plans";
import { renderText } from "./render-text";

interface DecisionOptions extends KindsOption {
  namespace?: string;
  digest?: string;
  group?: string;
  yes?: true;
  report?: string;
  reason?: string;
  expires?: number;
  operatorNamespace: string;
}

interface Target {
  title: string;
  namespace: string;
  /** As its plans name those who made the changes; nothing where that is not known, or restricts no approval. */
  authors?: readonly (string | undefined)[];
  names: Pick<ApprovalSpec, "object" | "digest" | "digests">;
}

/** The plans to decide on, and the text that shows them; no text where `--digest` names a plan that the user has seen. */
interface Choice {
  targets: Target[];
  shown?: string;
}

type Cluster = Pick<KubernetesClient, "json" | "list" | "create">;

export function approveCommand(): Command {
  const command = decisionCommand("approve", "Approve", "allow that plans are applied");
  return command
    .option(
      "--report <file>",
      "approve the plans of a report of `kindstack preview --propose --output json`, also before they are there",
    )
    .option("--yes", "approve what is shown without asking, as where there is no terminal");
}

export function rejectCommand(): Command {
  return decisionCommand("reject", "Reject", "say that plans are not to be applied, which the objects then tell");
}

function decisionCommand(name: string, decision: DecisionOnPlan, description: string): Command {
  const command = new Command(name)
    .description(description)
    .argument("[kind]", KIND_HELP)
    .argument("[name]", "the object's name")
    .option(
      "-n, --namespace <namespace>",
      "the object's namespace (default: the kubeconfig's); with --group, of all objects",
    )
    .option("--digest <digest>", "of the object's plan: what you have seen, and no other")
    .option("--group <digest>", "all plans that are there with the same difference; its first characters suffice")
    .option("--reason <text>", "why, for the history of the objects")
    .option("--expires <duration>", "how long it holds, such as 30m, 8h or 7d, at most 30d (default: 24h)", duration)
    .option("--operator-namespace <namespace>", "where plans of kinds without a namespace are", "kindstack-system")
    .addOption(kindsOption("kinds to choose from"));
  return command
    .addHelpText(
      "after",
      `
It takes the right to create approvals.kindstack.dev, and to approve plans.kindstack.dev, in the namespace of the plan.
Where the operator runs with --author-may-not-approve, those who made a change cannot approve it.

Examples:
  kindstack ${name} podsets web -n team-a --digest sha256:…
  kindstack ${name} podsets web -n team-a
  kindstack ${name} --group sha256:3c5d1a77e0b2 --reason 'CHG-4711'`,
    )
    .action(async (kind: string | undefined, name: string | undefined, options: DecisionOptions) => {
      const ways = [name, options.group, options.report].filter((way) => way !== undefined);
      if (ways.length !== 1) {
        const takesReport = command.options.some(({ long }) => long === "--report");
        const others = takesReport ? ", --group or --report" : " or --group";
        command.error(`error: name one of: an object (kind and name)${others}`);
      }
      await withKubernetes(async (client) => {
        const choice = await choiceOf(command, client, kind, name, options);
        if (decision === "Approve") await letConfirm(choice, options);
        await decideAll(client, decision, choice.targets, options);
      });
    });
}

async function choiceOf(
  command: Command,
  client: Cluster,
  word: string | undefined,
  name: string | undefined,
  options: DecisionOptions,
): Promise<Choice> {
  const { report, group } = options;
  if (report !== undefined) return { targets: await targetsOfReport(report, allKinds(options), options) };
  if (group !== undefined) return choiceOfGroup(await readPlans(client, options.namespace), group, allKinds(options));
  if (word === undefined || name === undefined) return command.error("error: name the object");
  const kind = findKind(kindsWith(command, options, word), word);
  const object = { name, namespace: options.namespace ?? kubeconfigNamespace() };
  const plan = await findPlan(client, kind, object);
  const { digest } = plan.spec;
  if (options.digest !== undefined && options.digest !== digest) {
    throw new Error(`${planTitle(plan)} has another plan by now, ${digest}: look at it with kindstack plan`);
  }
  const target = {
    title: `${planTitle(plan)} ${digest}`,
    namespace: plan.metadata.namespace ?? "",
    authors: [plan.spec.cause.by],
    names: namesOf(kind, plan),
  };
  return { targets: [target], ...(options.digest === undefined && { shown: renderText(planReport(kind, plan)) }) };
}

async function letConfirm({ targets, shown }: Choice, { yes }: DecisionOptions): Promise<void> {
  if (shown === undefined) return;
  process.stdout.write(`${shown.trimEnd()}\n\n`);
  if (yes) return;
  const titles = targets.map(({ title }) => visible(title)).join(", ");
  const answer = await confirm(`Approve ${titles}?`);
  if (answer === undefined) {
    throw new Error(
      "there is no terminal to ask on: name what you have seen with --digest, or approve this with --yes",
    );
  }
  if (!answer) throw new Error("nothing was approved");
}

function namesOf(kind: AnyKind, { metadata, spec: { object, digest } }: Plan): Target["names"] {
  const { namespace, name } = object;
  const elsewhere = namespace !== undefined && namespace !== metadata.namespace && { namespace };
  return { object: { kind: kindName(kind), ...elsewhere, name }, digest };
}

/** One approval for each namespace with plans of the group, for the present plans. */
function choiceOfGroup(plans: readonly Plan[], start: string, kinds: readonly AnyKind[]): Choice {
  const members = plans.filter(({ spec }) => spec.group.startsWith(start));
  const groups = [...new Set(members.map(({ spec }) => spec.group))];
  const [group] = groups;
  if (group === undefined) throw new Error(`no plan has the group ${start}: see kindstack plans --group`);
  if (groups.length > 1) throw new Error(`${start} may be ${groups.join(" or ")}`);
  const byNamespace = Map.groupBy(members, ({ metadata }) => metadata.namespace ?? "");
  const targets = [...byNamespace].flatMap(([namespace, all]) =>
    inChunks(all, MAX_APPROVED_PLANS).map((plans) => ({
      title: `${counted(plans.length, "plan")} in ${namespace}, ${group}`,
      namespace,
      authors: plans.map(({ spec }) => spec.cause.by),
      names: { digests: plans.map(({ spec }) => spec.digest) },
    })),
  );
  const [first] = members;
  const kind = first && kindOf(kinds, first.spec.object);
  // The difference is the same in all.
  const difference = first === undefined || kind === undefined ? [] : [renderText(planReport(kind, first))];
  return { targets, shown: [...difference, planTable(members)].join("\n") };
}

function inChunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, n) => items.slice(n * size, (n + 1) * size));
}

/** What a preview has shown: the digests need no plan in the cluster. */
async function targetsOfReport(
  file: string,
  kinds: readonly AnyKind[],
  { operatorNamespace }: DecisionOptions,
): Promise<Target[]> {
  const report = readJson(await readFile(file, "utf8"));
  if (!Check(reportSchema, report)) throw new Error(`${file} is no report of kindstack preview --output json`);
  const targets = report.objects.flatMap((plan) => {
    const kind = kindOf(kinds, plan);
    if (kind === undefined || plan.digest === undefined) return [];
    const title = `${plan.kind} ${objectKey(plan)} ${plan.digest}`;
    const names = { object: { kind: kindName(kind), name: plan.name }, digest: plan.digest };
    return [{ title, namespace: plan.namespace ?? operatorNamespace, names }];
  });
  if (targets.length === 0) throw new Error(`${file} has no digests: was it made with --propose?`);
  return targets;
}

async function decideAll(
  client: Cluster,
  decision: DecisionOnPlan,
  targets: readonly Target[],
  { reason, expires }: DecisionOptions,
): Promise<void> {
  const approver = await ownName(client);
  const expiresAt = expires === undefined ? {} : { expiresAt: new Date(Date.now() + expires).toISOString() };
  if (decision === "Approve") refuseOwn(targets, approver);
  for (const { title, namespace, names } of targets) {
    const spec = { ...names, decision, approver, ...(reason !== undefined && { reason }), ...expiresAt };
    const manifest = { ...APPROVAL_TYPE, metadata: { generateName: `${decision.toLowerCase()}-`, namespace }, spec };
    const made = (await client.create(manifest).catch((error) => refused(error, namespace))) as Approval;
    const until = new Date(expiryOf(made)).toISOString().replace(/\.\d+Z$/, "Z");
    process.stdout.write(`${decision === "Approve" ? "approved" : "rejected"} ${visible(title)}, until ${until}\n`);
  }
}

/** The operator heeds no approval of a change by those who made it. Of a group, that concerns each object for itself. */
function refuseOwn(targets: readonly Target[], approver: string): void {
  const all = targets.flatMap(({ authors = [undefined] }) => authors);
  const own = all.filter((by) => by?.split(", ").includes(approver));
  if (own.length === 0) return;
  const advice = `another user must approve what ${approver} has changed`;
  if (own.length === all.length) throw new Error(`your approval would have no effect: ${visible(advice)}`);
  process.stderr.write(`${own.length} of ${all.length} plans stay, as they are your own: ${visible(advice)}\n`);
}

/** As the API server knows the user; policies compare with it. */
async function ownName(client: Pick<KubernetesClient, "json">): Promise<string> {
  type Status = { userInfo: { username: string } };
  const status = await review<Status>(client, "authentication.k8s.io/v1", "SelfSubjectReview", {});
  return status?.userInfo.username ?? "";
}

function refused(error: unknown, namespace: string): never {
  if (!isApiError(error, 403)) throw error;
  throw new Error(`you may not decide on plans in the namespace ${namespace}: ${error.message}`, { cause: error });
}
