import type { LiveObject } from "../../providers/kubernetes/client";
import type { Log } from "../../providers/log";
import type { ProgramContext } from "./capabilities";

/** What an object's references lead to now, by the names that the kind gives them. */
export type Referenced = ReadonlyMap<string, LiveObject | undefined>;

/** What a program is told, by who runs it. */
export type RunContext = Omit<ProgramContext, "log" | "read"> & { log?: Log; referenced?: Referenced };
