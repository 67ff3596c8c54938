import { TerminalError } from "../errors";
import { listItems } from "../list-items";

const VARIABLE = "KINDSTACK_ALLOWED_GROUPS";
/** Everybody who reaches the API server, everybody whom it knows, and everything that runs in the cluster. */
const BROAD = ["system:unauthenticated", "system:authenticated", "system:serviceaccounts", "system:anonymous"];

/** Groups of everybody that may administer namespaces all the same: `KINDSTACK_ALLOWED_GROUPS`, with commas between them. */
export function allowedGroups(): string[] {
  return listItems(process.env[VARIABLE] ?? "");
}

/**
 * Refuses a group, or a user, that everybody is.
 *
 * @param field where the name stands, such as `spec.adminGroups.0`
 * @throws TerminalError `Invalid` naming the field, the group and how it is allowed
 */
export function refuseBroadGroup(name: string, field: string): void {
  if (!BROAD.includes(name) || allowedGroups().includes(name)) return;
  const allowed = `all except ${BROAD.join(", ")}, unless ${VARIABLE} names them`;
  throw new TerminalError(
    "Invalid",
    `${field}: ${JSON.stringify(name)} is not a team but everybody; allowed: ${allowed}`,
  );
}
