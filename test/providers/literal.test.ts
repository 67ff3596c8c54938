import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { describeUnknown, escapeReserved, maskSecrets, unescapeReserved } from "../../providers/literal";
import { served } from "../../providers/served";
import { anyCharacter } from "../characters";
import { almostReserved, RESERVED } from "../reserved";
import { plainProvider } from "./test-context";

/** Values in which the engine's own texts stand anywhere: alone, in part, with other letters, escaped before. */
const value = fc.letrec((tie) => ({
  value: fc.oneof(
    fc.constantFrom<unknown>(null, true, 0, -1.5),
    almostReserved,
    fc.string({ unit: anyCharacter }),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.oneof(almostReserved, fc.string(), fc.constant("__proto__")), tie("value"), { maxKeys: 3 }),
  ),
})).value;

const textsIn = (part: unknown): string[] => {
  if (typeof part === "string") return [part];
  if (typeof part !== "object" || part === null) return [];
  return [...(Array.isArray(part) ? [] : Object.keys(part)), ...Object.values(part).flatMap(textsIn)];
};

describe("a value that crosses the engine", () => {
  it("holds no text that the engine would take for its own, and comes back as it was", () => {
    fc.assert(
      fc.property(value, (given) => {
        const escaped = escapeReserved(given);
        expect(textsIn(escaped).filter((text) => RESERVED.includes(text))).toEqual([]);
        expect(unescapeReserved(escaped)).toEqual(given);
      }),
    );
  });

  it("is as it was given where nothing in it is the engine's", () => {
    const given = { name: `a ${RESERVED[0]}`, list: [RESERVED[1]?.toUpperCase(), 7], "literal:": "literal:text" };
    expect(escapeReserved(given)).toBe(given);
    expect(unescapeReserved(given)).toBe(given);
  });

  it("is the same for a provider in front of the engine and behind it", async () => {
    const seen: unknown[] = [];
    const see = <T>(result: T, ...values: unknown[]): T => {
      seen.push(...values);
      return result;
    };
    const provider = served<object, object>({
      check: async (olds, news) => see({ inputs: news, failures: [] }, olds, news),
      diff: async (_id, olds, news) => see({ changes: false }, olds, news),
      create: async (inputs) => see({ id: "id", outs: inputs }, inputs),
      read: async (id, outs) => see({ id, props: outs }, outs),
      update: async (_id, olds, news) => see({ outs: news }, olds, news),
      delete: async (_id, outs) => see(undefined, outs),
      release: async (_id, outs) => see(undefined, outs),
    });
    const given = { name: RESERVED[0], [RESERVED.at(-1) as string]: [RESERVED[1]] };
    const escaped = escapeReserved(given) as Record<string, unknown>;

    const told = [
      (await provider.check(escaped, escaped)).inputs,
      (await provider.create(escaped)).outs,
      (await provider.read("id", escaped)).props,
      (await provider.update("id", escaped, escaped)).outs,
    ];
    await provider.diff("id", escaped, escaped);
    await provider.delete("id", escaped);
    await provider.release("id", escaped);

    expect(told).toEqual(told.map(() => escaped));
    expect(seen).toEqual(seen.map(() => given));
    expect(seen).toHaveLength(10);
  });
});

it("the id of a resource crosses the engine like a value", async () => {
  const name = RESERVED[0] as string;
  const seen: string[] = [];
  const create = async () => ({ id: name, outs: {} });
  const provider = served(plainProvider({ create, delete: async (id) => void seen.push(id) }));
  const { id } = await provider.create({});
  await provider.delete(id, {});
  expect([id, ...seen]).toEqual([`literal:${name}`, name]);
});

describe("a value of the engine's own", () => {
  const [unknown] = RESERVED;
  const refusing = plainProvider({
    check: async (_olds, news) => ({
      inputs: { ...news, filled: "in" },
      failures: ["name.first", "size"].map((property) => ({ property, reason: "is refused" })),
    }),
  });

  it("stays what it is when a preview does not know it yet, and is not refused", async () => {
    const news = { name: { first: unknown }, size: 1 };
    const { inputs, failures } = await served(refusing).check({}, news);
    expect(inputs).toEqual(news);
    expect(failures).toEqual([{ property: "size", reason: "is refused" }]);
    const known = await served(refusing).check({}, { name: { first: `literal:${unknown}` } });
    expect(known.inputs).toEqual({ name: { first: `literal:${unknown}` }, filled: "in" });
    expect(known.failures).toHaveLength(2);
  });

  it("is shown in words", () => {
    const secret = { [RESERVED.at(-1) as string]: "1b47061264138c4ac30d75fd1eb44270", ciphertext: "v1:abc" };
    expect(maskSecrets({ data: { password: secret, size: 1 }, list: [secret] })).toEqual({
      data: { password: "[secret]", size: 1 },
      list: ["[secret]"],
    });
    expect(describeUnknown({ name: unknown, text: `literal:${unknown}` })).toEqual({
      name: "[unknown]",
      text: `literal:${unknown}`,
    });
  });
});
