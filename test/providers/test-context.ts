import { noFence } from "../../providers/fence";
import { standardError } from "../../providers/log";
import type { ProviderContext } from "../../providers/provider";

/** What an operator tells a call. */
export function testContext(parts: Partial<ProviderContext> = {}): ProviderContext {
  const { signal } = new AbortController();
  return { fence: noFence(), signal, log: standardError("test"), progress: () => {}, ...parts };
}
