import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { clientOf } from "./connection-limit";
import { certificateIdentity, type Identity } from "./identity";
import { Refusal } from "./refusal";
import type { TokenReviews } from "./token-reviews";

/**
 * Tells who sent a request: by the client certificate that the TLS listener verified, or else by a bearer token, which
 * the API server reviews.
 *
 * @throws Refusal 401 for an unknown user, 503 when the API server could not be asked
 */
export async function authenticate(request: IncomingMessage, reviews: TokenReviews): Promise<Identity> {
  const token = bearerToken(request);
  const identity =
    ofCertificate(request.socket as TLSSocket) ?? (token && (await reviews.identityOf(token, clientOf(request))));
  if (!identity) throw new Refusal(401, "Unauthorized", "Unauthorized");
  return identity;
}

export function bearerToken({ headers }: IncomingMessage): string | undefined {
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? "")?.[1];
}

/** The user of a verified certificate. A connection may outlive the certificate that it began with. */
function ofCertificate(socket: TLSSocket): Identity | undefined {
  const certificate = socket.authorized ? socket.getPeerX509Certificate()?.toLegacyObject() : undefined;
  if (certificate === undefined || Date.parse(certificate.valid_to) <= Date.now()) return undefined;
  return certificateIdentity(certificate);
}
