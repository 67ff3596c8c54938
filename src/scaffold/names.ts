/** The names of a new kind, in each form that its files use. */
export interface NewKindNames {
  /** `BackupPolicy` */
  kind: string;
  /** `backuppolicies` */
  plural: string;
  /** `backuppolicy` */
  singular: string;
  /** `backup-policy`: its folder and package. */
  folder: string;
  /** `backupPolicy`: its constant; `switchKind` for a reserved word. */
  constant: string;
  /** `example.com` */
  group: string;
}

/** What no module can call a constant, or an import; then what CommonJS and the templates have already. */
const RESERVED = new Set(
  (
    "arguments as async await break case catch class const continue debugger default delete do else enum eval export " +
    "extends false finally for function get if implements import in instanceof interface let new null of package " +
    "private protected public return set static super switch this throw true try typeof undefined var void while with yield " +
    "exports module require defineKind describe expect it objectOf planBetween registeredBy withText"
  ).split(" "),
);

export function namesOf(kind: string, group: string, plural = pluralOf(kind)): NewKindNames {
  if (!/^[A-Z][A-Za-z0-9]{0,62}$/.test(kind)) {
    throw new RangeError(
      `the name ${JSON.stringify(kind)} must be letters and digits that begin with a capital, such as BackupPolicy`,
    );
  }
  if (!/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$/.test(group)) {
    throw new RangeError(`--group ${group}: it is a domain of yours, such as example.com`);
  }
  if (!/^[a-z][a-z0-9]*$/.test(plural)) throw new RangeError(`--plural ${plural}: it is a word of lower-case letters`);
  const folder = kind.replace(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, "-").toLowerCase();
  const camel = folder.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  const constant = RESERVED.has(camel) ? `${camel}Kind` : camel;
  return { kind, plural, singular: kind.toLowerCase(), folder, constant, group };
}

/** Nouns that no rule forms, as the last word of a kind's name. Kubernetes' own generators have the rules alone. */
const IRREGULAR = new Map(
  (
    "person people, child children, man men, woman women, foot feet, tooth teeth, goose geese, mouse mice, ox oxen, " +
    "leaf leaves, half halves, shelf shelves, life lives, knife knives, wife wives, wolf wolves, calf calves, thief thieves, " +
    "index indices, vertex vertices, matrix matrices, quiz quizzes, datum data, medium media, criterion criteria, " +
    "hero heroes, echo echoes, potato potatoes"
  )
    .split(", ")
    .map((pair) => pair.split(" ") as [string, string]),
);

/** `policies`, `boxes`, `keys`; English has more exceptions, for which there is an option. */
function pluralOf(kind: string): string {
  const singular = kind.toLowerCase();
  const last = /[A-Z][a-z0-9]*$/.exec(kind)?.[0].toLowerCase() ?? "";
  const irregular = IRREGULAR.get(last);
  if (irregular !== undefined) return singular.slice(0, -last.length) + irregular;
  if (/[aeiouy]sis$/.test(singular)) return singular.replace(/is$/, "es");
  if (/(series|species|endpoints|settings|status)$/.test(singular)) return singular.replace(/status$/, "statuses");
  if (/(s|x|z|ch|sh)$/.test(singular)) return `${singular}es`;
  if (/[^aeiou]y$/.test(singular)) return `${singular.slice(0, -1)}ies`;
  return `${singular}s`;
}
