import { expect } from "vitest";
import type { AnyProvider } from "../../providers/host/session";
import { ProviderHost } from "../../providers/host/session";
import { OBJECT_STUB, provider as objects } from "../../providers/kubernetes/object";
import type { Observations, WriteCall } from "../../providers/observation";
import { ROW_STUB, provider as rows } from "../../providers/postgres/row";
import { PROVIDER_PROPERTY } from "../../providers/resource-options";

const host = new ProviderHost(
  new Map<string, AnyProvider>([
    [ROW_STUB, rows],
    [OBJECT_STUB, objects],
  ]),
);

/** A call of the engine's that writes a resource, with what it gives. */
export interface Write {
  call: WriteCall;
  name?: string;
  olds?: object;
  news?: object;
}

const urnOf = ({ name = "a" }: Write) => `urn:pulumi:s::kindstack::test:Resource::${name}`;

/** The calls of previews, and of updates that are held to them, of providers of one kind. */
export function heldCalls(stub: typeof ROW_STUB) {
  const withStub = (values: object | undefined) => values && { ...values, [PROVIDER_PROPERTY]: stub };

  /** What a preview of these writes sees. */
  async function observe(...writes: Write[]): Promise<Observations> {
    const session = host.openSession({});
    await Promise.all(
      writes.map((write) => {
        const [olds, news] = [withStub(write.olds), withStub(write.news)];
        const sides = { ...(olds && { olds }), ...(news && { news }) };
        return session.call("Observe", { urn: urnOf(write), operation: write.call, ...sides });
      }),
    );
    session.close();
    return session.observed;
  }

  /** Writes, each by itself, at the same time. @returns how each ended: the outputs, or the error */
  async function writeAll(observed: Observations | undefined, ...writes: Write[]): Promise<unknown[]> {
    const session = host.openSession({ observed });
    const ended = await Promise.allSettled(
      writes.map(async (write) => {
        const [olds = {}, news = {}] = [withStub(write.olds), withStub(write.news)];
        const properties = write.call === "Delete" ? olds : news;
        return session.call(write.call, { urn: urnOf(write), id: "id", olds, news, properties });
      }),
    );
    session.close();
    return ended.map((end) =>
      end.status === "fulfilled" ? (end.value as { properties?: unknown }).properties : end.reason,
    );
  }

  /** Writes one. @throws what its provider throws */
  async function write(observed: Observations | undefined, one: Write): Promise<unknown> {
    const [ended] = await writeAll(observed, one);
    if (ended instanceof Error) throw ended;
    return ended;
  }

  return { observe, write, writeAll };
}

/** The error about a write that found something else. */
export const outdated = (message: string | RegExp = "") => ({
  errorClass: "retryable",
  reason: "PlanOutdated",
  message: expect.stringMatching(message),
});
