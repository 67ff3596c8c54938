import { type KindObject, objectKey } from "../contract/object";
import type { PostgresWriterSpec, PostgresWriterStatus } from "./schema";

export function postgresWriterReport({ metadata }: KindObject<PostgresWriterSpec>): PostgresWriterStatus {
  return { id: objectKey(metadata) };
}
