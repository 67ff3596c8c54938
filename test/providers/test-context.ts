import { noFence } from "../../providers/fence";
import { standardError } from "../../providers/log";
import type { DynamicProvider, Properties, ProviderContext } from "../../providers/provider";

/** What an operator tells a call. */
export function testContext(parts: Partial<ProviderContext> = {}): ProviderContext {
  const { signal } = new AbortController();
  return { fence: noFence(), signal, log: standardError("test"), progress: () => {}, ...parts };
}

/** A provider of what is as it is declared, but for the methods that a test gives. */
export function plainProvider<T extends object = Properties>(
  methods: Partial<DynamicProvider<T, T>> = {},
): DynamicProvider<T, T> {
  return {
    check: async (_olds, news) => ({ inputs: news, failures: [] }),
    diff: async () => ({ changes: false }),
    create: async (inputs) => ({ id: "id", outs: inputs }),
    read: async (id, props) => ({ id, props }),
    update: async (_id, _olds, news) => ({ outs: news }),
    delete: async () => {},
    release: async () => {},
    ...methods,
  };
}
