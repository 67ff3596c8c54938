import { stringify } from "yaml";

/** Prints YAML documents without aliases, which not every reader of YAML resolves. */
export function printYaml(documents: readonly object[]): void {
  const texts = documents.map((document) => stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 }));
  process.stdout.write(texts.join("---\n"));
}
