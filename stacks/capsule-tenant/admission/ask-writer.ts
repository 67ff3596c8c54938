import type { LiveObject } from "../../../providers/kubernetes/index";
import type { AdmissionView } from "../../contract/index";
import { type Ask, expiredAsks, formatAsks } from "../quota-asks";

/** Keeps what this process asks for on one ResourceQuota, with one write at a time. */
export class AskWriter {
  readonly #annotation: string;
  #written: ReadonlyMap<string, Ask> = new Map();
  #isWriting = false;

  /** @param annotation this process's own */
  constructor(annotation: string) {
    this.#annotation = annotation;
  }

  /** What is asked for. */
  get written(): ReadonlyMap<string, Ask> {
    return this.#written;
  }

  /**
   * Writes until what is needed is asked for, and withdraws it when nothing is.
   *
   * @param needed as things are: asked again after each write
   * @throws ApiError when it cannot be written
   */
  async keep(view: AdmissionView, quota: LiveObject, needed: () => ReadonlyMap<string, Ask>): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    try {
      for (let asks = needed(); !this.#isAsked(asks); asks = needed()) await this.#write(view, quota, asks);
    } finally {
      this.#isWriting = false;
    }
  }

  #isAsked(asks: ReadonlyMap<string, Ask>): boolean {
    if (asks.size === 0) return this.#written.size === 0;
    const now = Date.now();
    return [...asks].every(([resource, { used, more }]) => {
      const written = this.#written.get(resource);
      return written !== undefined && written.until > now && written.used + written.more >= used + more;
    });
  }

  async #write(
    view: AdmissionView,
    { apiVersion, kind, metadata }: LiveObject,
    asks: ReadonlyMap<string, Ask>,
  ): Promise<void> {
    const { name, namespace, uid } = metadata;
    this.#written = asks;
    const annotations = {
      ...Object.fromEntries(expiredAsks({ metadata } as LiveObject).map((annotation) => [annotation, null])),
      [this.#annotation]: asks.size === 0 ? null : formatAsks(asks),
    };
    await view.client.mergePatch({ apiVersion, kind }, name, namespace, { metadata: { uid, annotations } });
  }
}
