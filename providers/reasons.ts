/*
 * Every reason that a condition, an error or a log line can have. `docs/troubleshooting.md` explains each of them. Not
 * here: the reasons of the API server, which are passed on as they are.
 */

/** Of conditions, when nothing has failed. */
const PROGRESS = [
  "BackOff",
  "Cordoned",
  "Creating",
  "Deleting",
  "Enforced",
  "Finalizing",
  "NotCordoned",
  "NotYetCordoned",
  "NotYetEnforced",
  "Paused",
  "Pending",
  "ProgramChanged",
  "Reconciling",
  "Repairing",
  "Requested",
  "Resizing",
  "Retrying",
  "Settled",
  "Succeeded",
  "Updating",
  "Waiting",
] as const;

/** Of objects that are wrong, in conflict, or blocked by another object. */
const OBJECT = [
  "Conflict",
  "DeletionFailed",
  "Forbidden",
  "Gone",
  "Invalid",
  "NamespaceProtected",
  "RepairsReverted",
  "Terminating",
  "TooMany",
] as const;

/** Of the API server and of what it serves. */
const API_SERVER = [
  "ForeignDefinition",
  "MissingPrerequisite",
  "NoCluster",
  "NotServed",
  "OwnerMissing",
  "UnknownKind",
  "Unreachable",
  "WatchError",
] as const;

/** Of the database of rows. */
const DATABASE = [
  "AuthenticationFailed",
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
  "SchemaMissing",
  "StatementTimeout",
  "TableMissing",
  "TableNotAllowed",
  "TlsFailed",
  "TooManyConnections",
  "TransactionConflict",
  "UniqueViolation",
  "ValueMissing",
  "ValueOutOfRange",
  "ValueRefused",
  "ValueTooLong",
  "WrongType",
] as const;

/** Of updates, Pulumi and the state. */
const UPDATE = [
  "InternalError",
  "Killed",
  "LeaseLost",
  "Locked",
  "NoPulumi",
  "NoWorkspace",
  "SystemError",
  "Timeout",
  "Unreadable",
  "UpdateEnded",
  "UpdateFailed",
] as const;

/** Of the command line alone. */
const COMMAND_LINE = [
  "BackupExists",
  "Duplicate",
  "Incomplete",
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

export const REASONS = [...PROGRESS, ...OBJECT, ...API_SERVER, ...DATABASE, ...UPDATE, ...COMMAND_LINE];
export type Reason = (typeof REASONS)[number];
