import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { sendAnswer } from "../http/answer";
import { answerOf, relay } from "./relay";

/*
 * Clients ask the API server what their user may do: `kubectl auth can-i`, k9s, Headlamp. It does not know that the proxy
 * lets owners list and watch their namespaces. Its answer repeats the question, in whatever encoding that came.
 */

const REVIEW = /^\/apis\/authorization\.k8s\.io\/v1\/selfsubject(access|rules)reviews$/;
const VERBS = ["list", "watch"];
const OWN_NAMESPACES = { verbs: VERBS, apiGroups: [""], resources: ["namespaces"] };

const accessReview = Compile(
  Type.Object({
    spec: Type.Object({
      resourceAttributes: Type.Object({
        verb: Type.Enum(["list", "watch"]),
        resource: Type.Literal("namespaces"),
        group: Type.Optional(Type.Literal("")),
        subresource: Type.Optional(Type.Literal("")),
        name: Type.Optional(Type.Literal("")),
      }),
    }),
    status: Type.Object({ allowed: Type.Boolean() }),
  }),
);
const rulesReview = Compile(Type.Object({ status: Type.Object({ resourceRules: Type.Array(Type.Object({})) }) }));

/** Whether a request asks what its user may do, and takes the answer in JSON. */
export function isSelfReview({ method, url = "", headers: { accept = "*/*" } }: IncomingMessage): boolean {
  return method === "POST" && /\*\/\*|application\/json/.test(accept) && REVIEW.test(url.split("?")[0] ?? "");
}

/**
 * Answers such a request of a user whose lists of namespaces the proxy narrows.
 *
 * @throws Refusal 503 when the API server does not answer
 */
export async function answerSelfReview(
  request: IncomingMessage,
  response: ServerResponse,
  upstream: ClientRequest,
): Promise<void> {
  const { message } = await answerOf(upstream, request, response);
  if (message.statusCode !== 201) return void relay(message, response);
  for (const name of ["audit-id", "warning"]) {
    const lines = message.headersDistinct[name];
    if (lines !== undefined) response.setHeader(name, lines);
  }
  sendAnswer(response, { status: 201, body: withOwnNamespaces(JSON.parse(await text(message))) });
}

/** The review with what the proxy allows; whatever the namespace, which lists of namespaces do not have. */
function withOwnNamespaces(review: object): object {
  if (accessReview.Check(review)) {
    return { ...review, status: { allowed: true, reason: "the proxy shows you the namespaces that you own" } };
  }
  if (!rulesReview.Check(review)) return review;
  const { status } = review;
  return { ...review, status: { ...status, resourceRules: [OWN_NAMESPACES, ...status.resourceRules] } };
}
