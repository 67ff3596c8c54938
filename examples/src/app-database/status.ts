import type { KindObject } from "kindstack";
import type { LiveObject } from "kindstack/providers/kubernetes";
import type { AppDatabaseSpec, AppDatabaseStatus } from "./schema";

export function appDatabaseReport(
  _object: KindObject<AppDatabaseSpec>,
  owned: readonly LiveObject[],
): AppDatabaseStatus {
  const secret = owned.find(({ kind, metadata }) => kind === "Secret" && !metadata.deletionTimestamp);
  return { secret: secret?.metadata.name ?? "" };
}
