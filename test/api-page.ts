import fs from "node:fs";
import path from "node:path";
import ts from "typescript";

const ROOT = path.resolve(__dirname, "..");

/** The public modules: what package.json exports, except what only states name. */
const MODULES: Readonly<Record<string, string>> = {
  kindstack: "stacks/contract/index.ts",
  "kindstack/providers/kubernetes": "providers/kubernetes/index.ts",
  "kindstack/providers/postgres": "providers/postgres/index.ts",
  "kindstack/testing": "src/testing/index.ts",
};

const HEAD = `# API: what a kind may use

This page is generated from the doc comments of the package's public modules. Everything else in the package may change at any time.
[Write a kind](write-a-kind.md) shows how the parts fit together.
`;

/** docs/api.md. */
export function apiPage(): string {
  const modules = Object.entries(MODULES).map(([specifier, file]) => {
    const exported = exportsOf(path.join(ROOT, file)).map(({ name, file }) => entryOf(name, file));
    return `## \`${specifier}\`\n\n${exported.join("\n")}`;
  });
  const contents = Object.keys(MODULES).map((name) => `- [\`${name}\`](#${name.replaceAll("/", "")})\n`);
  return `${HEAD}\nOn this page:\n\n${contents.join("")}\n${modules.join("\n")}`;
}

/** The modules that package.json exports, as far as people import them. */
export function publicModules(): string[] {
  return Object.keys(MODULES);
}

/** What a module exports again from others, by name, in alphabetical order. */
function exportsOf(file: string): { name: string; file: string }[] {
  const found = parse(file).statements.flatMap((statement) => {
    if (!ts.isExportDeclaration(statement) || statement.exportClause === undefined) return [];
    const { moduleSpecifier, exportClause } = statement;
    if (!moduleSpecifier || !ts.isStringLiteral(moduleSpecifier) || !ts.isNamedExports(exportClause)) return [];
    const source = moduleSpecifier.text;
    return exportClause.elements.map(({ name, propertyName }) => ({
      name: name.text,
      file: source.startsWith(".") ? path.resolve(path.dirname(file), `${source}.ts`) : source,
      renamed: propertyName !== undefined,
    }));
  });
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function entryOf(name: string, file: string): string {
  if (!path.isAbsolute(file)) return `### \`${name}\`\n\nFrom the package \`${file}\`.\n`;
  const source = parse(file);
  const declared = source.statements.find((statement) => nameOf(statement) === name);
  if (declared === undefined) throw new Error(`${file} declares no ${name}`);
  const comment = describe(declared);
  return `### \`${name}\`\n\n${comment && `${comment}\n\n`}\`\`\`ts\n${signatureOf(declared, source)}\n\`\`\`\n`;
}

function nameOf(statement: ts.Statement): string | undefined {
  if (ts.isVariableStatement(statement)) return statement.declarationList.declarations[0]?.name.getText();
  const { name } = statement as ts.Statement & { name?: ts.Identifier };
  return name?.text;
}

/** A declaration without what it does: comments of members stay, bodies and values do not. */
function signatureOf(node: ts.Statement, source: ts.SourceFile): string {
  const text = source.text.slice(node.getStart(source), node.end);
  if (ts.isFunctionDeclaration(node) && node.body) {
    return clean(source.text.slice(node.getStart(source), node.body.getStart(source)).trimEnd());
  }
  if (ts.isVariableStatement(node)) {
    const [declaration] = node.declarationList.declarations;
    const value =
      declaration?.initializer && ts.isLiteralExpression(declaration.initializer)
        ? ` = ${declaration.initializer.getText(source)}`
        : "";
    return `const ${declaration?.name.getText(source)}${value};`;
  }
  if (!ts.isClassDeclaration(node)) return clean(text);
  const members = node.members
    .filter((member) => !isHidden(member))
    .map((member) => {
      const body = (member as ts.ConstructorDeclaration).body;
      const end = body === undefined ? member.end : body.getStart(source);
      const declared = source.text
        .slice(member.getStart(source), end)
        .trim()
        .replace(/^declare /, "");
      return `  ${declared}${declared.endsWith(";") ? "" : ";"}`;
    });
  const head = source.text.slice(node.getStart(source), node.members.pos).trimEnd();
  return clean(`${head}\n${members.join("\n")}\n}`);
}

function isHidden(member: ts.ClassElement): boolean {
  const modifiers = ts.canHaveModifiers(member) ? ts.getModifiers(member) : undefined;
  const hidden = [ts.SyntaxKind.PrivateKeyword, ts.SyntaxKind.StaticKeyword];
  return (
    (member.name !== undefined && ts.isPrivateIdentifier(member.name)) ||
    (modifiers ?? []).some(({ kind }) => hidden.includes(kind))
  );
}

function clean(text: string): string {
  return text
    .replace(/^export (declare )?/, "")
    .split("\n")
    .filter((line) => !line.includes("biome-ignore"))
    .join("\n");
}

/** The doc comment as Markdown. */
function describe(node: ts.Node): string {
  const [comment] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc).slice(-1);
  if (comment === undefined) return "";
  const tags = (comment.tags ?? []).map((tag) => {
    const text = textOf(tag.comment);
    if (ts.isJSDocParameterTag(tag)) return `- \`${tag.name.getText()}\`: ${text}`;
    return `- ${tag.tagName.text}: ${text}`;
  });
  return [textOf(comment.comment), tags.join("\n")].filter((part) => part !== "").join("\n\n");
}

function textOf(comment: ts.JSDoc["comment"]): string {
  return (ts.getTextOfJSDocComment(comment) ?? "")
    .replace(/\{@link ([^}]+)\}/g, "`$1`")
    .replace(/\s*\n(?!\n)\s*/g, (gap) => (gap.split("\n").length > 2 ? "\n\n" : " "))
    .trim();
}

const parsed = new Map<string, ts.SourceFile>();

function parse(file: string): ts.SourceFile {
  const known = parsed.get(file);
  if (known !== undefined) return known;
  const source = ts.createSourceFile(file, fs.readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true);
  parsed.set(file, source);
  return source;
}
