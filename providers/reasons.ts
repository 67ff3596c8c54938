/**
 * Every reason that a condition, an error or a log line can have. `docs/troubleshooting.md` explains each of them. Not
 * here: the reasons of the API server, which are passed on as they are.
 */
export const REASONS = [
  // Of conditions, when nothing has failed.
  "BackOff",
  "Cordoned",
  "Creating",
  "Deleting",
  "Enforced",
  "Finalizing",
  "Finishing",
  "NotCordoned",
  "NotYetCordoned",
  "HostCollision",
  "NamespaceQuotaExceeded",
  "NotYetEnforced",
  "Observed",
  "Paused",
  "Pending",
  "ProgramChanged",
  "Reconciling",
  "Refreshing",
  "Repairing",
  "Requested",
  "Resizing",
  "Retrying",
  "RightsTaken",
  "Settled",
  "Succeeded",
  "Updating",
  "Waiting",
  "WaitsForApproval",
  // Of objects that are wrong, in conflict, or blocked by another object.
  "Conflict",
  "DeletionFailed",
  "Forbidden",
  "Gone",
  "Invalid",
  "InvalidAnnotation",
  "InvalidProgram",
  "Moving",
  "NamespaceProtected",
  "RepairsReverted",
  "Terminating",
  // Of the API server and of what it serves.
  "ForeignDefinition",
  "MissingPrerequisite",
  "NoCluster",
  "NotServed",
  "OwnerMissing",
  "StaleList",
  "UnknownKind",
  "Unreachable",
  "WatchError",
  // Of the database of rows.
  "AuthenticationFailed",
  "ColumnGenerated",
  "ColumnMissing",
  "ConnectionFailed",
  "ConnectionLost",
  "ConnectionRefused",
  "ConnectionTimeout",
  "DatabaseError",
  "DatabaseMissing",
  "DatabaseOverloaded",
  "DatabaseReadOnly",
  "DatabaseUnavailable",
  "ForeignKeyViolation",
  "HostUnknown",
  "InvalidTable",
  "InvalidText",
  "KeyNotUnique",
  "LockTimeout",
  "OwnershipTableMissing",
  "PermissionDenied",
  "PostgresNotConfigured",
  "RowConflict",
  "RowHidden",
  "SchemaMissing",
  "StatementTimeout",
  "TableMissing",
  "TableNotAllowed",
  "TableReplaced",
  "TlsFailed",
  "TooManyConnections",
  "TransactionConflict",
  "UniqueViolation",
  "ValueMissing",
  "ValueNotStable",
  "ValueOutOfRange",
  "ValueRefused",
  "ValueRewritten",
  "ValueTooLong",
  "WriteSuppressed",
  "WrongType",
  // Of updates, Pulumi and the state.
  "BackendForeign",
  "BackendUnknown",
  "InternalError",
  "Killed",
  "LeaseLost",
  "Locked",
  "NoEngine",
  "NoWorkspace",
  "PlanOutdated",
  "PlansUnsupported",
  "OutOfMemory",
  "ProgramFailed",
  "ProgramTimedOut",
  "StateMissing",
  "SystemError",
  "Timeout",
  "Unreadable",
  "UpdateEnded",
  "UpdateFailed",
  // Of the command line alone.
  "BackupExists",
  "Interrupted",
  "InvalidConfiguration",
  "Misconfigured",
  "NoBackup",
  "NoManifest",
  "Refused",
  "StackExists",
  "Unauthorized",
  "Watched",
] as const;
/** A reason of a kind or provider outside of Kindstack, see {@link defineReason}. */
type OwnReason = string & { readonly [own]: true };
declare const own: unique symbol;

export type Reason = (typeof REASONS)[number] | OwnReason;

/**
 * A reason of your own for errors: `const MIGRATION_FAILED = defineReason("MigrationFailed")`. Conditions and Events have it.
 *
 * @param reason CamelCase, as Kubernetes asks for it
 * @throws RangeError for one that Kubernetes would not take, or to which Kindstack gives a meaning
 */
export function defineReason(reason: string): OwnReason {
  if (!/^[A-Z][A-Za-z0-9]{0,127}$/.test(reason)) {
    throw new RangeError(`the reason ${JSON.stringify(reason)} must be in CamelCase, such as MigrationFailed`);
  }
  if ((REASONS as readonly string[]).includes(reason)) {
    throw new RangeError(`${reason} is a reason of Kindstack's: use it as it is, or choose another word`);
  }
  return reason as OwnReason;
}

/** Of what the process of a kind's code was to do, when it ended before. */
export const ENDINGS: readonly string[] = ["ProgramFailed", "ProgramTimedOut", "OutOfMemory"] satisfies Reason[];
