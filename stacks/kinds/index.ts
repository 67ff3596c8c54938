import type { AnyKind } from "../contract/kind";
import { capsuleTenant } from "./capsule-tenant/kind";
import { memcached } from "./memcached/kind";
import { podSet } from "./podset/kind";
import { postgresWriter } from "./postgres-writer/kind";
import { tenant } from "./tenant/kind";

/** The kinds that Kindstack serves; a new kind is a folder beside these and a line here. */
export const kinds: readonly AnyKind[] = [tenant, capsuleTenant, postgresWriter, podSet, memcached];
