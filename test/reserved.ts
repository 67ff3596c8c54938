import fc from "fast-check";

/** What Pulumi's engine takes for something else than a text: values that are not known yet, and keys of signatures. */
export const RESERVED = [
  "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
  "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
  "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
  "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
  "030794c1-ac77-496b-92df-f27374a8bd58",
  "e48ece36-62e2-4504-bad9-02848725956a",
  "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
  "4dabf18193072939515e22adb298388d",
];

/** Those, also in capitals, as a part of more, or as they are while they cross the engine. */
export const almostReserved = fc
  .tuple(
    fc.constantFrom(...RESERVED),
    fc.constantFrom<(text: string) => string>(
      (text) => text,
      (text) => text.toUpperCase(),
      (text) => `${text}x`,
      (text) => ` ${text}`,
      (text) => `literal:${text}`,
      (text) => `literal:literal:${text}`,
    ),
  )
  .map(([text, change]) => change(text));
