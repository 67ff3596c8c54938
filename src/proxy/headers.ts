import { Refusal } from "../http/refusal";

/** Header lines by lower-case name, as `IncomingMessage.headersDistinct` has them. */
type HeaderLines = NodeJS.Dict<string[]>;
export type OutgoingHeaders = Record<string, string | string[]>;

/** For one connection only (RFC 9110, section 7.6.1), and what older peers use likewise. */
const HOP_BY_HOP = [
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/**
 * Headers of this connection (`host`, `expect`), the user's credentials for the proxy (`authorization`), and what the
 * API server accepts from front proxies (`x-remote-…`).
 */
const NOT_FORWARDED = /^(authorization|host|expect|x-remote-.*)$/;
/** A browser cannot set headers of a WebSocket: it passes the token as one of the offered protocols. */
const TOKEN_PROTOCOL = /^base64url\.bearer\.authorization\.k8s\.io\./;

/** The headers of a request as they go to the API server, before the impersonation headers are added. */
export function requestHeaders(headers: HeaderLines, remoteAddress: string | undefined): OutgoingHeaders {
  const spoofed = Object.keys(headers).find((name) => /^impersonate-/i.test(name));
  if (spoofed !== undefined) {
    throw new Refusal(
      403,
      "Forbidden",
      `the header ${spoofed} is refused: the proxy does not let users impersonate others; ask the API server directly`,
    );
  }
  const forwarded = withoutHopByHop(headers);
  for (const name of Object.keys(forwarded)) if (NOT_FORWARDED.test(name)) delete forwarded[name];

  const protocols = (forwarded["sec-websocket-protocol"] as string[] | undefined)
    ?.flatMap((line) => line.split(","))
    .map((protocol) => protocol.trim())
    .filter((protocol) => !TOKEN_PROTOCOL.test(protocol));
  delete forwarded["sec-websocket-protocol"];
  if (protocols?.length) forwarded["sec-websocket-protocol"] = protocols.join(", ");

  if (remoteAddress !== undefined) {
    forwarded["x-forwarded-for"] = [...(headers["x-forwarded-for"] ?? []), remoteAddress].join(", ");
  }
  // Keep the client's framing of the body: without it, the API server would read the body as the next request, with the
  // proxy's credentials.
  if (headers["transfer-encoding"] !== undefined) {
    delete forwarded["content-length"];
    forwarded["transfer-encoding"] = "chunked";
  } else if (headers["content-length"] !== undefined) {
    forwarded["content-length"] = headers["content-length"];
  }
  return forwarded;
}

export function hasBody(headers: HeaderLines): boolean {
  return (
    headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? ["0"]).some((length) => length !== "0")
  );
}

/** The headers that are not for one connection only; the client gets those of the API server's answers. */
export function withoutHopByHop(headers: HeaderLines): OutgoingHeaders {
  const named = (headers.connection ?? []).flatMap((line) => line.split(",")).map((name) => name.trim().toLowerCase());
  const dropped = new Set([...HOP_BY_HOP, ...named]);
  const kept: OutgoingHeaders = {};
  for (const [name, lines] of Object.entries(headers)) {
    if (lines !== undefined && !dropped.has(name)) kept[name] = lines;
  }
  return kept;
}
