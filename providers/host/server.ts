import { promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { PluginInfo } from "@pulumi/pulumi/proto/plugin_pb";
import * as provrpc from "@pulumi/pulumi/proto/provider_grpc_pb";
import * as prov from "@pulumi/pulumi/proto/provider_pb";
import { version } from "@pulumi/pulumi/version";
import { Empty } from "google-protobuf/google/protobuf/empty_pb";
import { type JavaScriptValue, Struct } from "google-protobuf/google/protobuf/struct_pb";
import { type DefinedProvider, PROVIDER_PROPERTY } from "../dynamic";
import { errorMessageOf, failureOf, RetryableError } from "../errors";
import { withinFence } from "../fence";
import type { Properties } from "../provider";
import { ProviderSession, type SessionOptions } from "./session";

type AnyProvider = DefinedProvider["provider"];

interface ResourceRequest {
  getUrn(): string;
}

const MAX_MESSAGE_BYTES = 400 * 1024 * 1024; // what the SDK's own server allows

/**
 * Pulumi's resource-provider service for dynamic resources, in this process.
 *
 * The engine attaches to it (`PULUMI_DEBUG_PROVIDERS=pulumi-nodejs:<port>`) instead of starting a Node.js process for
 * every update, which alone takes longer than the update. The SDK's own server (`@pulumi/pulumi/cmd/dynamic-provider`) does
 * not implement `Attach`. One host serves all updates of a process.
 */
export class ProviderHost {
  #providers: ReadonlyMap<string, AnyProvider>;
  /** By stack. */
  readonly #sessions = new Map<string, ProviderSession>();
  readonly #server = new grpc.Server({ "grpc.max_receive_message_length": MAX_MESSAGE_BYTES });
  #port = 0;

  private constructor(providers: ReadonlyMap<string, AnyProvider>) {
    this.#providers = providers;
    this.#server.addService(provrpc.ResourceProviderService, this.#service());
  }

  /** @param providers the provider behind each stub that the state may hold */
  static async start(providers: ReadonlyMap<string, AnyProvider>): Promise<ProviderHost> {
    const host = new ProviderHost(providers);
    const bind = promisify(host.#server.bindAsync.bind(host.#server));
    host.#port = await bind("127.0.0.1:0", grpc.ServerCredentials.createInsecure());
    return host;
  }

  /** Serves these providers in place of those given before. */
  serve(providers: ReadonlyMap<string, AnyProvider>): void {
    this.#providers = providers;
  }

  /** The value of `PULUMI_DEBUG_PROVIDERS` that makes an engine use this host. */
  get attachment(): string {
    return `pulumi-nodejs:${this.#port}`;
  }

  /**
   * Answers calls for a stack until the session is closed. A session is for one update: calls before and after it are
   * refused, and calls that still run when it is closed write nothing more.
   *
   * @throws RetryableError `Locked` when the stack has a session
   */
  openSession(stack: string, options: SessionOptions = {}): ProviderSession {
    if (this.#sessions.has(stack))
      throw new RetryableError("Locked", `the stack ${stack} is being worked on by this process`);
    const session = new ProviderSession(options, () => this.#sessions.delete(stack));
    this.#sessions.set(stack, session);
    return session;
  }

  stop(): void {
    this.#server.forceShutdown();
  }

  #providerOf(...candidates: Properties[]): AnyProvider {
    // The engine sends a placeholder instead of the stub where a preview does not know it yet.
    for (const { [PROVIDER_PROPERTY]: stub } of candidates) {
      const provider = this.#providers.get(stub as string);
      if (provider !== undefined) return provider;
    }
    throw new Error(
      "the state names a dynamic provider that is not Kindstack's; the operator runs no code that it finds in a state",
    );
  }

  #unary<Request extends ResourceRequest, Response>(
    run: (request: Request, session: ProviderSession) => Promise<Response>,
  ): grpc.handleUnaryCall<Request, Response> {
    return (call, callback) => {
      const urn = call.request.getUrn();
      const session = this.#sessions.get(stackOf(urn));
      if (session === undefined || call.cancelled) {
        callback({ code: grpc.status.FAILED_PRECONDITION, details: "the update of this stack has ended" });
        return;
      }
      const answer = async () => {
        session.fence.check();
        return run(call.request, session);
      };
      withinFence(session.fence, answer).then(
        (response) => callback(null, response),
        (error: unknown) => {
          session.failures.push({ urn, ...failureOf(error) });
          callback({ code: grpc.status.UNKNOWN, details: errorMessageOf(error) });
        },
      );
    };
  }

  /** All other methods are answered with UNIMPLEMENTED. */
  #service(): grpc.UntypedServiceImplementation {
    return {
      check: this.#unary(async (request: prov.CheckRequest, session) => {
        const [olds, news] = [properties(request.getOlds()), properties(request.getNews())];
        const { inputs, failures } = await this.#providerOf(news, olds).check(olds, news);
        const urn = request.getUrn();
        const refused = failures.map(({ property, reason }) => {
          session.failures.push({ urn, errorClass: "terminal", reason: "Invalid", message: `${property}: ${reason}` });
          return new prov.CheckFailure().setProperty(property).setReason(reason);
        });
        return new prov.CheckResponse().setInputs(withStub(inputs, news)).setFailuresList(refused);
      }),
      diff: this.#unary(async (request: prov.DiffRequest, session) => {
        const [olds, news] = [properties(request.getOlds()), properties(request.getNews())];
        const result = await this.#providerOf(news, olds).diff(request.getId(), olds, news);
        if (result.deleteBeforeReplace) session.deletedFirst.add(request.getUrn());
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
        return response.setId(result.id).setProperties(withStub(result.props, outs)).setInputs(request.getInputs());
      }),
      update: this.#unary(async (request: prov.UpdateRequest) => {
        const [olds, news] = [properties(request.getOlds()), properties(request.getNews())];
        const { outs } = await this.#providerOf(news).update(request.getId(), olds, news);
        return new prov.UpdateResponse().setProperties(withStub(outs, news));
      }),
      delete: this.#unary(async (request: prov.DeleteRequest, session) => {
        const { release, onUnreplaced } = session.options;
        const outs = properties(request.getProperties());
        const provider = this.#providerOf(outs);
        try {
          await provider[release ? "release" : "delete"](request.getId(), outs);
        } catch (error) {
          if (session.deletedFirst.has(request.getUrn())) onUnreplaced?.(request.getUrn());
          throw error;
        }
        return new Empty();
      }),
      attach: (_call: unknown, callback: grpc.sendUnaryData<Empty>) => callback(null, new Empty()),
      cancel: (_call: unknown, callback: grpc.sendUnaryData<Empty>) => callback(null, new Empty()),
      configure: (_call: unknown, callback: grpc.sendUnaryData<prov.ConfigureResponse>) =>
        callback(null, new prov.ConfigureResponse().setAcceptsecrets(false)),
      getPluginInfo: (_call: unknown, callback: grpc.sendUnaryData<PluginInfo>) =>
        callback(null, new PluginInfo().setVersion(version)),
    };
  }
}

function properties(value: Struct | undefined): Properties {
  return value?.toJavaScript() ?? {};
}

function withStub(values: object, { [PROVIDER_PROPERTY]: stub }: Properties): Struct {
  return Struct.fromJavaScript({ ...values, [PROVIDER_PROPERTY]: stub } as Record<string, JavaScriptValue>);
}

/** `urn:pulumi:<stack>::<project>::<type>::<name>` */
function stackOf(urn: string): string {
  return urn.slice("urn:pulumi:".length).split("::", 1)[0] ?? "";
}
