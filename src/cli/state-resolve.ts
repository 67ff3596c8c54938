import { Command, InvalidArgumentError } from "commander";
import { isApiError, type KubernetesClient, type LiveObject } from "../../providers/kubernetes/client";
import { withKubernetes } from "../../providers/kubernetes/connection";
import { STATE_DECISIONS, STATE_MISSING_ANNOTATION, type StateDecision } from "../../stacks/contract/annotations";
import { findCondition } from "../../stacks/contract/condition";
import { type AnyKind, kindName, kindType, statusOf } from "../../stacks/contract/kind";
import { findKind } from "../../stacks/contract/kind-name";
import { visible } from "../text/plain-text";
import { renderTable } from "../text/table";
import { allKinds, KIND_HELP, type KindsOption, kindsOption, kindsWith } from "./kinds-option";

interface ResolveOptions extends KindsOption {
  missing?: StateDecision;
  all?: true;
  namespace?: string;
}

interface Lost {
  kind: AnyKind;
  object: LiveObject;
}

export function resolveCommand(): Command {
  const command = new Command("resolve")
    .description("list objects whose state is missing (StateMissing), or decide what becomes of them")
    .argument("[kind]", KIND_HELP)
    .argument("[name]", "the object's name")
    .option("-n, --namespace <namespace>", "only objects of this namespace (default: all namespaces)")
    .option("--missing <decision>", `what becomes of them: ${STATE_DECISIONS.words.join(", ")}`, parseDecision)
    .option("--all", "decide for all objects that are listed")
    .addOption(kindsOption("kinds to look at"));
  return command
    .addHelpText(
      "after",
      `
It sets the annotation ${STATE_MISSING_ANNOTATION} of the objects, which the operator removes when that is done:
  Adopt      take over what is found by names and marks, and make the rest; refused where a plugin would make it once more
  Recreate   make everything once more; what cannot be found stays, unmanaged
  Forget     when the object is deleted, delete what carries its mark; the rest stays, unmanaged

Restore the state instead where there is a backup, or correct PULUMI_BACKEND_URL: then nothing is to be decided.

Examples:
  kindstack state resolve
  kindstack state resolve --missing Recreate apikeys billing -n team-a
  kindstack state resolve --missing Adopt --all`,
    )
    .action(async (word: string | undefined, name: string | undefined, options: ResolveOptions) => {
      const { missing, all } = options;
      if (missing !== undefined && (name === undefined) === (all === undefined)) {
        command.error("error: with --missing, name one object, or use --all");
      }
      const kinds = word === undefined ? allKinds(options) : [findKind(kindsWith(command, options, word), word)];
      await withKubernetes(async (client) => {
        const lost = (await findLost(client, kinds, options)).filter(
          ({ object }) => (name ?? object.metadata.name) === object.metadata.name,
        );
        // Kinds of one's own are looked at only where they are named.
        const nothing = `no such object has lost its state; looked at: ${kinds.map(kindName).join(", ")}. Name other kinds with --kinds`;
        if (lost.length === 0) process.stdout.write(`${nothing}\n`);
        else if (missing === undefined) process.stdout.write(`${tableOf(lost)}\n`);
        else await decideAll(client, lost, missing);
      });
    });
}

function parseDecision(text: string): StateDecision {
  const decision = STATE_DECISIONS.read(text);
  if (decision === undefined) throw new InvalidArgumentError(`${STATE_DECISIONS.problem(text)}.`);
  return decision;
}

/** @throws ApiError when objects of a kind may not be listed; a kind that is not installed has none */
async function findLost(
  client: Pick<KubernetesClient, "list">,
  kinds: readonly AnyKind[],
  { namespace }: ResolveOptions,
): Promise<Lost[]> {
  const lost: Lost[] = [];
  for (const kind of kinds) {
    const { items } = await client.list(kindType(kind)).catch((error: unknown) => {
      if (isApiError(error, 404)) return { items: [] };
      throw error;
    });
    for (const object of items) {
      const isWanted = namespace === undefined || object.metadata.namespace === namespace;
      if (isWanted && findCondition(statusOf(object).conditions, "Synced")?.reason === "StateMissing")
        lost.push({ kind, object });
    }
  }
  return lost;
}

function tableOf(lost: readonly Lost[]): string {
  const rows = lost.map(({ kind, object }) => {
    const { namespace = "", name, annotations = {}, deletionTimestamp } = object.metadata;
    const decision = annotations[STATE_MISSING_ANNOTATION] ?? (deletionTimestamp ? "being deleted" : "");
    return [kind.kind, namespace, name, statusOf(object).stack?.name ?? "", decision].map(visible);
  });
  return renderTable(["kind", "namespace", "name", "missing stack", ""], rows);
}

async function decideAll(
  client: Pick<KubernetesClient, "mergePatch">,
  lost: readonly Lost[],
  decision: StateDecision,
): Promise<void> {
  for (const { kind, object } of lost) {
    const { namespace, name, uid, deletionTimestamp } = object.metadata;
    const title = visible(`${kind.kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`);
    if (decision === "Recreate" && deletionTimestamp !== undefined) {
      process.stdout.write(`skipped ${title}: it is being deleted, which takes Adopt or Forget\n`);
      continue;
    }
    const annotations = { [STATE_MISSING_ANNOTATION]: decision };
    await client.mergePatch(kindType(kind), name, namespace, { metadata: { uid, annotations } });
    const when = decision === "Forget" && deletionTimestamp === undefined ? ", when it is deleted" : "";
    process.stdout.write(`${decision}: ${title}${when}\n`);
  }
}
