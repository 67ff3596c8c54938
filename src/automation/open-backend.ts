import type { Backend } from "./backend";
import { CommandBackend } from "./command-backend";
import { FileBackend, fileBackendDirectory } from "./file-backend";
import { PostgresBackend } from "./postgres-backend";
import type { PulumiOptions } from "./pulumi";

/** The backend of a workspace, by its URL. */
export function openBackend(options: PulumiOptions): Backend {
  const { backendUrl, checkpointTemplate } = options.workspace;
  const directory = fileBackendDirectory(backendUrl);
  if (directory !== undefined) return new FileBackend(directory, checkpointTemplate);
  return backendUrl.startsWith("postgres://") ? new PostgresBackend(options) : new CommandBackend(options);
}
