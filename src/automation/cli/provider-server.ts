import { promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { PluginInfo } from "@pulumi/pulumi/proto/plugin_pb";
import { ResourceProviderService } from "@pulumi/pulumi/proto/provider_grpc_pb";
import * as provider from "@pulumi/pulumi/proto/provider_pb";
import { Status } from "@pulumi/pulumi/proto/status_pb";
import { version } from "@pulumi/pulumi/version";
import { Any } from "google-protobuf/google/protobuf/any_pb";
import { Empty } from "google-protobuf/google/protobuf/empty_pb";
import { type JavaScriptValue, Struct } from "google-protobuf/google/protobuf/struct_pb";
import { errorMessageOf, initializationOf } from "../../../providers/errors";
import type { ProviderRequest, ProviderSession } from "../../../providers/host/session";

/** A message of Pulumi's provider protocol, as a session gives it: in its JSON form. */
type Answer = Record<string, JavaScriptValue> & { failures?: { property: string; reason: string }[] };

const struct = (value: JavaScriptValue | undefined) =>
  Struct.fromJavaScript((value ?? {}) as Record<string, JavaScriptValue>);
const text = (value: JavaScriptValue | undefined) => (value ?? "") as string;
const RESPONSES: Readonly<Record<string, (answer: Answer) => unknown>> = {
  Check: ({ inputs, failures = [] }) =>
    new provider.CheckResponse()
      .setInputs(struct(inputs))
      .setFailuresList(
        failures.map((one) => new provider.CheckFailure().setProperty(one.property).setReason(one.reason)),
      ),
  Diff: ({ changes, replaces, deleteBeforeReplace }) =>
    new provider.DiffResponse()
      .setChanges(provider.DiffResponse.DiffChanges[changes as "DIFF_SOME" | "DIFF_NONE"])
      .setReplacesList(replaces as string[])
      .setDeletebeforereplace(deleteBeforeReplace === true),
  Create: ({ id, properties }) => new provider.CreateResponse().setId(text(id)).setProperties(struct(properties)),
  Read: ({ id, properties, inputs }) =>
    new provider.ReadResponse().setId(text(id)).setProperties(struct(properties)).setInputs(struct(inputs)),
  Update: ({ properties }) => new provider.UpdateResponse().setProperties(struct(properties)),
  Delete: () => new Empty(),
};

/**
 * Serves a session's providers to a CLI, which attaches to them (`PULUMI_DEBUG_PROVIDERS`) instead of starting the SDK's
 * script: errors keep their class, and the fence holds.
 *
 * @param onUnreplaced told when what is to be deleted before its replacement is made cannot be: the engine continues to wait
 *   for it (pulumi/pulumi#16373)
 */
export async function serveProviders(session: ProviderSession, onUnreplaced: () => void) {
  const deletedFirst = new Set<string>();
  const unary =
    (method: string, respond: (answer: Answer) => unknown): grpc.handleUnaryCall<object, unknown> =>
    ({ request }, callback) => {
      const fields = jsonOf(request);
      session.call(method, fields).then(
        (answer) => {
          if ("deleteBeforeReplace" in answer && answer.deleteBeforeReplace) deletedFirst.add(fields.urn);
          callback(null, respond(answer as Answer));
        },
        (error: unknown) => {
          if (method === "Delete" && deletedFirst.has(fields.urn)) onUnreplaced();
          callback({ code: grpc.status.UNKNOWN, details: errorMessageOf(error), ...detailsOf(error) });
        },
      );
    };
  const always =
    (answer: unknown): grpc.handleUnaryCall<object, unknown> =>
    (_call, callback) =>
      callback(null, answer);
  const server = new grpc.Server({ "grpc.max_receive_message_length": 400 * 1024 * 1024 }); // as the SDK's own
  server.addService(ResourceProviderService, {
    ...Object.fromEntries(
      Object.entries(RESPONSES).map(([method, respond]) => [method.toLowerCase(), unary(method, respond)]),
    ),
    attach: always(new Empty()),
    cancel: always(new Empty()),
    configure: always(new provider.ConfigureResponse().setAcceptsecrets(false)),
    getPluginInfo: always(new PluginInfo().setVersion(version)),
  });
  const port = await promisify(server.bindAsync.bind(server))("127.0.0.1:0", grpc.ServerCredentials.createInsecure());
  return { port, close: () => server.forceShutdown() };
}

/** What a failed call has made, where gRPC has structured details. */
function detailsOf(error: unknown): { metadata?: grpc.Metadata } {
  const made = initializationOf(error);
  if (made === undefined) return {};
  const failed = new provider.ErrorResourceInitFailed()
    .setId(made.id)
    .setProperties(struct(made.properties as JavaScriptValue))
    .setReasonsList(made.reasons ?? []);
  const detail = new Any();
  detail.pack(failed.serializeBinary(), "pulumirpc.ErrorResourceInitFailed");
  const status = new Status().setCode(grpc.status.UNKNOWN).setMessage(errorMessageOf(error)).setDetailsList([detail]);
  const metadata = new grpc.Metadata();
  metadata.add("grpc-status-details-bin", Buffer.from(status.serializeBinary()));
  return { metadata };
}

function jsonOf(request: object): ProviderRequest {
  const get = (name: string): unknown =>
    (request as Record<string, (() => unknown) | undefined>)[`get${name}`]?.call(request);
  const properties = (name: string) => (get(name) as Struct | undefined)?.toJavaScript();
  return {
    urn: get("Urn") as string,
    id: get("Id") as string,
    timeout: get("Timeout") as number,
    ...Object.fromEntries(
      ["Olds", "News", "Properties", "Inputs"].flatMap((name) => {
        const value = properties(name);
        return value === undefined ? [] : [[name.toLowerCase(), value]];
      }),
    ),
  };
}
