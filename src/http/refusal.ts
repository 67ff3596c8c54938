/** A refusal by one of our servers, in the API server's form: a status code, a reason and a message. */
export class Refusal extends Error {
  override readonly name = "Refusal";

  constructor(
    readonly code: number,
    readonly reason: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** The Status object that tells clients of Kubernetes about it. */
  get status(): object {
    const { message, reason, code } = this;
    return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code };
  }
}
