import { type AnyProvider, ProviderSession, type SessionOptions } from "./session";

/** The dynamic providers of this process, which the engine asks while it runs updates. */
export class ProviderHost {
  /** @param providers the provider behind each stub that the state may hold */
  constructor(private providers: ReadonlyMap<string, AnyProvider>) {}

  /** Serves these providers in place of those given before. */
  serve(providers: ReadonlyMap<string, AnyProvider>): void {
    this.providers = providers;
  }

  /**
   * Answers the calls of one update until the session is closed. Calls after that are refused, and those that still run
   * write nothing more.
   */
  openSession(options: SessionOptions = {}): ProviderSession {
    return new ProviderSession(options, (stub) => this.providers.get(stub));
  }
}
