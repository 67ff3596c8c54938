import type { Backend } from "./backend";
import { commandBackend } from "./command-backend";
import { fileBackend, fileBackendDirectory } from "./file-backend";
import { postgresBackend } from "./postgres-backend";
import type { PulumiOptions } from "./pulumi";

/** The backend of a workspace, by its URL. */
export function openBackend(options: PulumiOptions): Backend {
  const { backendUrl, checkpointTemplate } = options.workspace;
  const directory = fileBackendDirectory(backendUrl);
  if (directory !== undefined) return fileBackend(directory, checkpointTemplate);
  return backendUrl.startsWith("postgres://") ? postgresBackend(options) : commandBackend(options);
}
