import { createHmac } from "node:crypto";
import { canonicalJson } from "../../providers/canonical-json";
import { PROVIDER_PROPERTY } from "../../providers/dynamic";
import { providerVersions } from "../../providers/index";
import type { DeclaredResource } from "../../providers/registration";
import type { StackRecord } from "../../stacks/contract/object";
import { declaredInTime } from "../automation/declared";
import type { Program } from "../automation/program";
import type { KindContext } from "./context";

type ProgramVersion = Pick<KindContext, "planKey" | "kind" | "programDigest">;

/**
 * A digest of what a program declares and of the versions of the providers that apply it: an update with the same has nothing to
 * do. It is keyed, as a status tells it and there may be secrets among the inputs.
 *
 * @param programDigest the version of a provider that has none
 */
export async function declarationsDigest(
  { planKey, kind, programDigest }: ProgramVersion,
  declared: readonly DeclaredResource[],
): Promise<string> {
  const versions = providerVersions(kind);
  const versioned = declared.map((resource) => {
    const { [PROVIDER_PROPERTY]: stub } = (resource.inputs ?? {}) as { [PROVIDER_PROPERTY]?: string };
    return [resource, stub === undefined ? null : (versions.get(stub) ?? programDigest)];
  });
  const contents = canonicalJson([versioned, kind.capabilities.settings?.() ?? null]);
  return createHmac("sha256", await planKey())
    .update(`declarations ${contents}`)
    .digest("hex")
    .slice(0, 16);
}

/** Whether an object's program declares what was applied at the last update. @throws what the program throws */
export async function declaresTheSame(version: ProgramVersion, stack: StackRecord, program: Program): Promise<boolean> {
  const { sdkRuntime, outputs } = version.kind.capabilities;
  // Outputs of resources, which only an update tells, give fields of the status by code that may be new.
  if (stack.declarations === undefined || sdkRuntime || outputs !== undefined) return false;
  const declared = await declaredInTime(program, Number.POSITIVE_INFINITY);
  return (await declarationsDigest(version, declared)) === stack.declarations;
}
