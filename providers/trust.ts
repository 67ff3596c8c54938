/** Node.js', Go's and PostgreSQL's words for a certificate whose CA is not trusted. */
const UNTRUSTED =
  /certificate signed by unknown authority|unable to (verify the first|get (local )?issuer) certificate|self[- ]signed certificate/i;
/** What Node.js adds, which does not help in a Pod. */
const OTHER_ADVICE = /; if the root CA is installed locally, try running Node.js with --use-system-ca/;
const ADVICE =
  "trust its CA: the key caBundle of the installation; elsewhere NODE_EXTRA_CA_CERTS and SSL_CERT_FILE, or PSQL_CA_FILE for rows";

/** A message about a certificate that is not trusted, with what to do. */
export function withTrustAdvice(message: string): string {
  return UNTRUSTED.test(message) && !message.includes(ADVICE)
    ? `${message.replace(OTHER_ADVICE, "")}; ${ADVICE}`
    : message;
}
