import { dirname } from "node:path";
import * as kubernetes from "../../providers/kubernetes/index";
import * as postgres from "../../providers/postgres/index";
import { collectRefused, definitionProblem } from "../contract/definition";
import * as contract from "../contract/index";
import type { AnyKind } from "../contract/kind";

/** The kinds that a module exports, each or as a list, or alone, and what is wrong with those that cannot be served. */
export function kindsIn(entry: string): { kinds: AnyKind[]; problems: string[] } {
  const { loaded, problems: refused } = collectRefused(() => importModule(entry) as Record<string, unknown>);
  const candidates = [...new Set([loaded, ...Object.values(loaded).flat()])].filter(isDefinition);
  if (candidates.length === 0) throw new Error(`${entry} exports no kind: export what defineKind returns`);
  const wrong = new Map(candidates.map((kind) => [kind, refused.get(kind) ?? definitionProblem(kind)]));
  return {
    kinds: candidates.filter((kind) => wrong.get(kind) === undefined),
    problems: [...wrong.values()].filter((problem) => problem !== undefined),
  };
}

function isDefinition(value: unknown): value is AnyKind {
  return typeof value === "object" && value !== null && "program" in value && "plural" in value;
}

const MODULE_SYNTAX = /\b(?:import|export)\b/;

/** The public modules of this package, by their specifiers. */
const PUBLIC_MODULES = {
  kindstack: contract,
  "kindstack/providers/kubernetes": kubernetes,
  "kindstack/providers/postgres": postgres,
};

/**
 * Loads a JavaScript or TypeScript module in which `kindstack` and Pulumi's SDK are this very package and its own: a second
 * copy in its `node_modules` would register resources where no update sees them.
 */
function importModule(file: string): unknown {
  // Loaded here: only those who serve other than the built-in kinds need it.
  const { createJiti } = require("jiti") as typeof import("jiti");
  const compiler = createJiti(file, { fsCache: false });
  const jiti = createJiti(file, {
    // A default import of CommonJS is what the TypeScript compiler makes of it; jiti's own would wrap each module in a proxy.
    interopDefault: false,
    // The compiler is half of what loading takes, and changes nothing in CommonJS.
    transform: (options) => ({
      code:
        options.ts || MODULE_SYNTAX.test(options.source)
          ? compiler.transform({ ...options, interopDefault: true })
          : options.source,
    }),
    fsCache: false,
    virtualModules: PUBLIC_MODULES,
    alias: { "@pulumi/pulumi": dirname(require.resolve("@pulumi/pulumi/package.json")) },
    nativeModules: ["@pulumi"],
  });
  return jiti(file);
}
