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
} from "../../stacks/contract/approval";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { findKind, kindOf } from "../../stacks/contract/kind-name";
import { objectKey } from "../../stacks/contract/object";
import type { Plan } from "../../stacks/contract/plan";
import { planTitle } from "../preview/plan-report";
import { reportSchema } from "../preview/report";
import { readJson } from "../text/json";
import { visible } from "../text/plain-text";
import { allKinds, KIND_HELP, type KindsOption, kindsOption, kindsWith } from "./kinds-option";
import { duration } from "./parse-options";
import { findPlan, readPlans } from "./read-plans";

interface DecisionOptions extends KindsOption {
  namespace?: string;
  digest?: string;
  group?: string;
  report?: string;
  reason?: string;
  expires?: number;
  operatorNamespace: string;
}

/** What to decide on, and the namespace of the approval. */
interface Target {
  title: string;
  namespace: string;
  /** As its plans name those who made the changes; nothing where that is not known, or restricts no approval. */
  authors?: readonly (string | undefined)[];
  names: Pick<ApprovalSpec, "object" | "digest" | "group">;
}

type Cluster = Pick<KubernetesClient, "json" | "list" | "create">;

export function approveCommand(): Command {
  const command = decisionCommand("approve", "Approve", "allow that plans are applied");
  return command.option(
    "--report <file>",
    "approve the plans of a report of `kindstack preview --propose --output json`, also before they are there",
  );
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
    .option("--digest <digest>", "only if the object's plan still has this digest")
    .option("--group <digest>", "all plans with the same difference; its first characters suffice")
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
        const targets = await targetsOf(command, client, kind, name, options);
        await decideAll(client, decision, targets, options);
      });
    });
}

async function targetsOf(
  command: Command,
  client: Cluster,
  word: string | undefined,
  name: string | undefined,
  options: DecisionOptions,
): Promise<Target[]> {
  if (options.report !== undefined) return targetsOfReport(options.report, allKinds(options), options);
  if (options.group !== undefined) return targetsOfGroup(await readPlans(client, options.namespace), options.group);
  if (word === undefined || name === undefined) return command.error("error: name the object");
  const kind = findKind(kindsWith(command, options, word), word);
  const object = { name, namespace: options.namespace ?? kubeconfigNamespace() };
  const plan = await findPlan(client, kind, object);
  const { digest } = plan.spec;
  if (options.digest !== undefined && options.digest !== digest) {
    throw new Error(`${planTitle(plan)} has another plan by now, ${digest}: look at it with kindstack plan`);
  }
  return [
    {
      title: `${planTitle(plan)} ${digest}`,
      namespace: plan.metadata.namespace ?? "",
      authors: [plan.spec.cause.by],
      names: namesOf(kind, plan),
    },
  ];
}

function namesOf(kind: AnyKind, { metadata, spec: { object, digest } }: Plan): Target["names"] {
  const { namespace, name } = object;
  const elsewhere = namespace !== undefined && namespace !== metadata.namespace && { namespace };
  return { object: { kind: kindName(kind), ...elsewhere, name }, digest };
}

/** An approval in each namespace that has such plans. */
function targetsOfGroup(plans: readonly Plan[], start: string): Target[] {
  const members = plans.filter(({ spec }) => spec.group.startsWith(start));
  const groups = [...new Set(members.map(({ spec }) => spec.group))];
  const [group] = groups;
  if (group === undefined) throw new Error(`no plan has the group ${start}: see kindstack plans --group`);
  if (groups.length > 1) throw new Error(`${start} may be ${groups.join(" or ")}`);
  const byNamespace = Map.groupBy(members, ({ metadata }) => metadata.namespace ?? "");
  return [...byNamespace].map(([namespace, plans]) => ({
    title: `${plans.length} ${plans.length === 1 ? "plan" : "plans"} in ${namespace}, ${group}`,
    namespace,
    authors: plans.map(({ spec }) => spec.cause.by),
    names: { group },
  }));
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
    const names = { object: { kind: kindName(kind), name: plan.name }, digest: plan.digest };
    return [
      {
        title: `${plan.kind} ${objectKey(plan)} ${plan.digest}`,
        namespace: plan.namespace ?? operatorNamespace,
        names,
      },
    ];
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
