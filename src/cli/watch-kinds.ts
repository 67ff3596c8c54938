import type { Logger } from "pino";
import { TerminalError } from "../../providers/errors";
import type { ProviderHost } from "../../providers/host/server";
import { providersOf } from "../../providers/index";
import type { KubernetesClient } from "../../providers/kubernetes/client";
import { type LoadedKinds, loadKinds } from "../../stacks/catalog";
import { type AnyKind, kindName } from "../../stacks/contract/kind";
import { KindWatch } from "../dev/kind-watch";
import type { Manager } from "../operator/manager";
import { permittedKinds } from "../operator/rights";

/** The parts of an operator that know its kinds. */
export interface WatchingOperator {
  chosen: LoadedKinds | undefined;
  /** The served kinds; kept up to date. */
  kinds: AnyKind[];
  client: KubernetesClient;
  host: Pick<ProviderHost, "serve">;
  operator: Pick<Manager, "serve" | "withdraw">;
  /** Applies CRDs, or refuses those of other operators. */
  prepare(client: KubernetesClient, kinds: readonly AnyKind[]): Promise<void>;
  /** Serves the admission of the kinds again. */
  restartAdmission(): Promise<void>;
  logger: Logger;
}

/** Puts edited kinds in force in an operator that runs. @param signal ends it */
export function watchKinds(parts: WatchingOperator, signal: AbortSignal): KindWatch {
  const { chosen = loadKinds(), kinds, client, host, operator, prepare, logger } = parts;
  const exchange = async (name: string, successor: AnyKind[]) => {
    const index = kinds.findIndex((kind) => kindName(kind) === name);
    const previous = kinds.splice(index === -1 ? kinds.length : index, 1, ...successor);
    const isAdmitted = ({ capabilities }: AnyKind) => capabilities.admission ?? capabilities.versions;
    if ([...previous, ...successor].some(isAdmitted)) await parts.restartAdmission();
  };
  return new KindWatch({
    loaded: chosen,
    served: kinds,
    signal,
    logger: logger.child({ component: "watch" }),
    async serve(kind, all) {
      const missing = new Map<string, string>();
      await permittedKinds(client, all, (name, reason) => missing.set(name, reason));
      const reason = missing.get(kindName(kind));
      if (reason !== undefined) throw new TerminalError("Forbidden", reason);
      await prepare(client, [kind]);
      host.serve(providersOf(all));
      await operator.serve(kind);
      await exchange(kindName(kind), [kind]);
    },
    async withdraw(kind) {
      await operator.withdraw(kindName(kind));
      await exchange(kindName(kind), []);
    },
  });
}
