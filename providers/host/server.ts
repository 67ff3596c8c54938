import * as grpc from "@grpc/grpc-js";
import { PluginInfo } from "@pulumi/pulumi/proto/plugin_pb";
import * as provrpc from "@pulumi/pulumi/proto/provider_grpc_pb";
import * as prov from "@pulumi/pulumi/proto/provider_pb";
import { version } from "@pulumi/pulumi/version";
import { Empty } from "google-protobuf/google/protobuf/empty_pb";
import { type JavaScriptValue, Struct } from "google-protobuf/google/protobuf/struct_pb";
import { type DynamicProvider, PROVIDER_PROPERTY, type Properties } from "../dynamic";
import { type ErrorClass, errorClassOf, errorMessageOf, errorReasonOf } from "../errors";
import { type Fence, withinFence } from "../fence";

/** A resource operation that a provider refused, with the class that is lost on the way through the engine. */
export interface ResourceFailure {
  urn: string;
  errorClass: ErrorClass;
  reason: string;
  message: string;
}

// biome-ignore lint/suspicious/noExplicitAny: each provider knows the type of its own properties
type AnyProvider = DynamicProvider<any, any>;

interface ResourceRequest {
  getUrn(): string;
}

const MAX_MESSAGE_BYTES = 400 * 1024 * 1024; // what the SDK's own server allows

/**
 * Pulumi's resource-provider service for dynamic resources, in this process.
 *
 * The engine attaches to it (`PULUMI_DEBUG_PROVIDERS=pulumi-nodejs:<port>`) instead of starting a Node.js process for
 * every update, which alone takes longer than the update. It speaks for the SDK's own dynamic-provider server
 * (`@pulumi/pulumi/cmd/dynamic-provider`), which does not implement `Attach`; one host serves all updates of a process.
 */
export class ProviderHost {
  readonly #providers: ReadonlyMap<string, AnyProvider>;
  readonly #failures = new Map<string, ResourceFailure[]>();
  readonly #releasing = new Set<string>();
  /** By stack: under what its calls are answered. */
  readonly #fences = new Map<string, Fence>();
  readonly #server = new grpc.Server({ "grpc.max_receive_message_length": MAX_MESSAGE_BYTES });
  #port: number | undefined;

  /** @param providers the provider behind each stub that the state may hold */
  constructor(providers: ReadonlyMap<string, AnyProvider>) {
    this.#providers = providers;
    this.#server.addService(provrpc.ResourceProviderService, this.#service());
  }

  async start(): Promise<void> {
    this.#port = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) =>
        error ? reject(error) : resolve(port),
      );
    });
  }

  /** The value of `PULUMI_DEBUG_PROVIDERS` that makes an engine use this host. */
  get attachment(): string {
    if (this.#port === undefined) throw new Error("the provider host was not started");
    return `pulumi-nodejs:${this.#port}`;
  }

  /** What failed in a stack since this was last asked; to be asked after each update. */
  takeFailures(stack: string): ResourceFailure[] {
    const failures = this.#failures.get(stack) ?? [];
    this.#failures.delete(stack);
    return failures;
  }

  /** From now on deletions in a stack release what was made instead of deleting it, or no longer do so. */
  releaseInstead(stack: string, release: boolean): void {
    if (release) this.#releasing.add(stack);
    else this.#releasing.delete(stack);
  }

  /**
   * From now on calls for a stack are answered under this fence, until its update has ended. A fence that has come down
   * stays until the next update: of a process that was killed, calls may still wait in a socket.
   */
  guard(stack: string, fence: Fence | undefined): void {
    if (fence !== undefined) this.#fences.set(stack, fence);
    else if (!this.#fences.get(stack)?.signal.aborted) this.#fences.delete(stack);
  }

  stop(): void {
    this.#server.forceShutdown();
  }

  #record(failure: ResourceFailure): void {
    const stack = stackOf(failure.urn);
    this.#failures.set(stack, [...(this.#failures.get(stack) ?? []), failure]);
  }

  #providerOf(...candidates: Properties[]): AnyProvider {
    // The engine sends a placeholder instead of the stub where a preview does not know it yet.
    for (const { [PROVIDER_PROPERTY]: stub } of candidates) {
      const provider = this.#providers.get(stub as string);
      if (provider !== undefined) return provider;
    }
    throw new Error(
      "the state names a dynamic provider that is not Kindstack's; the watcher runs no code that it finds in a state",
    );
  }

  #unary<Request extends ResourceRequest, Response>(
    run: (request: Request) => Promise<Response>,
  ): grpc.handleUnaryCall<Request, Response> {
    return (call, callback) => {
      const fence = this.#fences.get(stackOf(call.request.getUrn()));
      const answer = async () => {
        fence?.check();
        return run(call.request);
      };
      withinFence(fence, answer).then(
        (response) => callback(null, response),
        (error: unknown) => {
          const urn = call.request.getUrn();
          const failure = {
            urn,
            errorClass: errorClassOf(error),
            reason: errorReasonOf(error),
            message: errorMessageOf(error),
          };
          this.#record(failure);
          callback({ code: grpc.status.UNKNOWN, details: failure.message });
        },
      );
    };
  }

  #service(): grpc.UntypedServiceImplementation {
    const unimplemented: grpc.handleUnaryCall<unknown, unknown> = (_call, callback) =>
      callback({ code: grpc.status.UNIMPLEMENTED, details: "not implemented by dynamic providers" });

    return {
      check: this.#unary(async (request: prov.CheckRequest) => {
        const [olds, news] = [properties(request.getOlds()), properties(request.getNews())];
        const { inputs, failures } = await this.#providerOf(news, olds).check(olds, news);
        for (const { property, reason } of failures) {
          this.#record({
            urn: request.getUrn(),
            errorClass: "terminal",
            reason: "Invalid",
            message: `${property}: ${reason}`,
          });
        }
        return new prov.CheckResponse()
          .setInputs(struct({ ...inputs, [PROVIDER_PROPERTY]: news[PROVIDER_PROPERTY] }))
          .setFailuresList(
            failures.map(({ property, reason }) => new prov.CheckFailure().setProperty(property).setReason(reason)),
          );
      }),
      diff: this.#unary(async (request: prov.DiffRequest) => {
        const [olds, news] = [properties(request.getOlds()), properties(request.getNews())];
        const result = await this.#providerOf(news, olds).diff(request.getId(), olds, news);
        const { DIFF_SOME, DIFF_NONE } = prov.DiffResponse.DiffChanges;
        return new prov.DiffResponse()
          .setChanges(result.changes ? DIFF_SOME : DIFF_NONE)
          .setReplacesList(result.replaces ?? [])
          .setDeletebeforereplace(result.deleteBeforeReplace ?? false);
      }),
      create: this.#unary(async (request: prov.CreateRequest) => {
        const inputs = properties(request.getProperties());
        const { id, outs } = await this.#providerOf(inputs).create(inputs);
        return new prov.CreateResponse().setId(id).setProperties(withStub(outs, inputs));
      }),
      read: this.#unary(async (request: prov.ReadRequest) => {
        const outs = properties(request.getProperties());
        const result = await this.#providerOf(outs).read(request.getId(), outs);
        const response = new prov.ReadResponse();
        if (result.id === undefined) return response;
        const inputs = request.getInputs();
        if (inputs !== undefined) response.setInputs(inputs);
        return response.setId(result.id).setProperties(withStub(result.props, outs));
      }),
      update: this.#unary(async (request: prov.UpdateRequest) => {
        const [olds, news] = [properties(request.getOlds()), properties(request.getNews())];
        const { outs } = await this.#providerOf(news).update(request.getId(), olds, news);
        return new prov.UpdateResponse().setProperties(withStub(outs, news));
      }),
      delete: this.#unary(async (request: prov.DeleteRequest) => {
        const outs = properties(request.getProperties());
        const provider = this.#providerOf(outs);
        if (this.#releasing.has(stackOf(request.getUrn()))) await provider.release(request.getId(), outs);
        else await provider.delete(request.getId(), outs);
        return new Empty();
      }),
      attach: (_call: unknown, callback: grpc.sendUnaryData<Empty>) => callback(null, new Empty()),
      cancel: (_call: unknown, callback: grpc.sendUnaryData<Empty>) => callback(null, new Empty()),
      configure: (_call: unknown, callback: grpc.sendUnaryData<prov.ConfigureResponse>) =>
        callback(null, new prov.ConfigureResponse().setAcceptsecrets(false)),
      getPluginInfo: (_call: unknown, callback: grpc.sendUnaryData<PluginInfo>) =>
        callback(null, new PluginInfo().setVersion(version)),
      handshake: unimplemented,
      parameterize: unimplemented,
      getSchema: unimplemented,
      checkConfig: unimplemented,
      diffConfig: unimplemented,
      invoke: unimplemented,
      call: unimplemented,
      construct: unimplemented,
      getMapping: unimplemented,
      getMappings: unimplemented,
    };
  }
}

function properties(value: Struct | undefined): Properties {
  return value?.toJavaScript() ?? {};
}

function struct(value: object): Struct {
  return Struct.fromJavaScript(value as Record<string, JavaScriptValue>);
}

function withStub(outs: object, source: Properties): Struct {
  return struct({ ...outs, [PROVIDER_PROPERTY]: source[PROVIDER_PROPERTY] });
}

/** `urn:pulumi:<stack>::<project>::<type>::<name>` */
function stackOf(urn: string): string {
  return urn.slice("urn:pulumi:".length).split("::", 1)[0] ?? "";
}
