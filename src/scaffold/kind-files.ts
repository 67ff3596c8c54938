import type { NewKindNames } from "./names";

/** Texts by path. */
export type Files = Record<string, string>;

/** Where the files of a kind lie, and what they import; a folder of this repository and a package say it differently. */
interface Layout {
  sources: string;
  sample: string;
  test: string;
  contract: string;
  kubernetes: string;
  /** The test kit, the providers and the kind's folder, from the test. */
  fromTest: { kit: string; kubernetes: string; folder: string };
  /** The formatter sorts packages by name, and files by the longest way up. */
  sorted(imports: string[]): string[];
}

/** A kind's folder in this repository, with its test. */
export function folderFiles(names: NewKindNames): Files {
  const folder = `stacks/${names.folder}`;
  return kindFiles(names, {
    sources: folder,
    sample: `${folder}/sample.yaml`,
    test: `test/${folder}/kind.test.ts`,
    contract: "../contract/index",
    kubernetes: "../../providers/kubernetes/index",
    fromTest: {
      kit: "../../../src/testing/index",
      kubernetes: "../../../providers/kubernetes/index",
      folder: `../../../${folder}`,
    },
    sorted: (imports) => imports.reverse(),
  });
}

/**
 * A package of one kind.
 *
 * @param versions what it depends on, by package
 */
export function packageFiles(names: NewKindNames, versions: Readonly<Record<string, string>>): Files {
  const kubernetes = "kindstack/providers/kubernetes";
  return {
    "package.json": `${JSON.stringify(manifestOf(names, versions), null, 2)}\n`,
    "tsconfig.json": TSCONFIG,
    ".gitignore": "node_modules/\ndist/\n.kindstack/\n",
    "src/index.ts": `export { ${names.constant} } from "./kind";\n`,
    ...kindFiles(names, {
      sources: "src",
      sample: "sample.yaml",
      test: "test/kind.test.ts",
      contract: "kindstack",
      kubernetes,
      fromTest: { kit: "kindstack/testing", kubernetes, folder: "../src" },
      sorted: (imports) => imports,
    }),
  };
}

function manifestOf(
  { folder, kind }: NewKindNames,
  { kindstack = "", ...development }: Readonly<Record<string, string>>,
) {
  return {
    name: folder,
    version: "0.1.0",
    description: `The kind ${kind} for Kindstack`,
    private: true,
    type: "commonjs",
    main: "dist/index.js",
    files: ["dist", "sample.yaml"],
    scripts: {
      dev: "kindstack dev --kinds ./src",
      check: "tsc --noEmit -p tsconfig.json",
      build: "tsc -p tsconfig.json --rootDir src --outDir dist",
      test: "vitest run",
    },
    peerDependencies: { kindstack },
    devDependencies: development,
  };
}

const TSCONFIG = `{
  "compilerOptions": {
    "target": "es2022",
    "module": "node20",
    "types": ["node"],
    "strict": true,
    "noUncheckedIndexedAccess": true,
    "exactOptionalPropertyTypes": true,
    "declaration": true,
    "sourceMap": true,
    "skipLibCheck": true
  },
  "include": ["src"]
}
`;

function kindFiles({ kind, plural, singular, folder, constant, group }: NewKindNames, layout: Layout): Files {
  const { contract, kubernetes, fromTest, sorted } = layout;
  const schema = `import { Type } from "${contract}";

export const ${constant}Spec = Type.Object({
  text: Type.String({ description: "What the ConfigMap holds.", minLength: 1, maxLength: 1000 }),
});
export type ${kind}Spec = Type.Static<typeof ${constant}Spec>;

export const ${constant}Status = Type.Object({
  configMap: Type.String({ description: "The ConfigMap that holds the text; empty while there is none." }),
});
export type ${kind}Status = Type.Static<typeof ${constant}Status>;
`;
  const programImports = [
    `import type { KindObject, ProgramContext } from "${contract}";`,
    `import { KubernetesObject } from "${kubernetes}";`,
  ];
  const program = `${sorted(programImports).join("\n")}
import type { ${kind}Spec } from "./schema";

/** A ConfigMap with the text. */
${signature(`export function ${constant}Program`, [`{ metadata, spec }: KindObject<${kind}Spec>`, "{ owner }: ProgramContext"], "void")} {
  const { name, namespace = "" } = metadata;
  new KubernetesObject(\`configmap/\${name}\`, {
    owner,
    manifest: {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: \`\${name}-${folder}\`, namespace },
      data: { text: spec.text },
    },
  });
}
`;
  const statusImports = [
    `import type { KindObject } from "${contract}";`,
    `import type { LiveObject } from "${kubernetes}";`,
  ];
  const status = `${sorted(statusImports).join("\n")}
import type { ${kind}Spec, ${kind}Status } from "./schema";

${signature(`export function ${constant}Report`, [`_object: KindObject<${kind}Spec>`, "owned: readonly LiveObject[]"], `${kind}Status`)} {
  const configMap = owned.find(({ kind, metadata }) => kind === "ConfigMap" && !metadata.deletionTimestamp);
  return { configMap: configMap?.metadata.name ?? "" };
}
`;
  const definition = `import { defineKind } from "${contract}";
import { ${constant}Program } from "./program";
import { ${constant}Spec, ${constant}Status } from "./schema";
import { ${constant}Report } from "./status";

export const ${constant} = defineKind({
  group: "${group}",
  version: "v1alpha1",
  kind: "${kind}",
  plural: "${plural}",
  singular: "${singular}",
  scope: "Namespaced",
  description: "A text in a ConfigMap.",
  spec: ${constant}Spec,
  status: ${constant}Status,
  columns: [{ name: "ConfigMap", type: "string", jsonPath: ".status.configMap" }],
  owns: [{ apiVersion: "v1", kind: "ConfigMap" }],
  directory: __dirname,
  program: ${constant}Program,
  report: ${constant}Report,
});
`;
  const sample = `apiVersion: ${group}/v1alpha1
kind: ${kind}
metadata:
  name: ${folder}-sample
spec:
  text: the database moves on Sunday
`;
  const kitImports = `import type { LiveObject } from "${fromTest.kubernetes}";
import { objectOf, planBetween, registeredBy } from "${fromTest.kit}";`;
  const test = `${sorted([kitImports, `import { describe, expect, it } from "vitest";`]).join("\n")}
import { ${constant} } from "${fromTest.folder}/kind";

const withText = (text: string) => objectOf(${constant}, { text }, { name: "moving" });

describe("${kind}", () => {
  it("makes a ConfigMap with its text", async () => {
    expect(await registeredBy(${constant}.program, withText("on Sunday"))).toMatchObject([
      { manifest: { kind: "ConfigMap", metadata: { name: "moving-${folder}" }, data: { text: "on Sunday" } } },
    ]);
  });

  it("changes the ConfigMap in place", async () => {
    expect(await planBetween(${constant}.program, withText("on Sunday"), withText("on Monday"))).toEqual([
      { operation: "update", name: "configmap/moving", inputs: ["manifest.data.text"] },
    ]);
  });

  it("refuses an empty text", () => {
    expect(() => withText("")).toThrow("spec.text");
  });

  it("names its ConfigMap, while there is one", () => {
    const configMap = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "moving-${folder}" } } as LiveObject;
    expect(${constant}.report(withText("on Sunday"), [configMap])).toEqual({ configMap: "moving-${folder}" });
    expect(${constant}.report(withText("on Sunday"), [])).toEqual({ configMap: "" });
  });
});
`;
  return {
    [`${layout.sources}/schema.ts`]: schema,
    [`${layout.sources}/program.ts`]: program,
    [`${layout.sources}/status.ts`]: status,
    [`${layout.sources}/kind.ts`]: definition,
    [layout.sample]: sample,
    [layout.test]: test,
  };
}

/** As the formatter breaks it: in one line where that has at most 120 characters. */
function signature(head: string, parameters: readonly string[], result: string): string {
  const line = `${head}(${parameters.join(", ")}): ${result}`;
  if (line.length + " {".length <= 120) return line;
  return `${head}(\n${parameters.map((parameter) => `  ${parameter},\n`).join("")}): ${result}`;
}
