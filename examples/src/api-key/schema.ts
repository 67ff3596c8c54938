import { Type } from "kindstack";

const label = Type.String({ description: "What the key is for.", minLength: 1, maxLength: 100 });

export const apiKeySpec = Type.Object({
  label,
  length: Type.Integer({ description: "The length of the key in bytes.", minimum: 16, maximum: 64, default: 32 }),
});
export type ApiKeySpec = Type.Static<typeof apiKeySpec>;

/** v1alpha1 called the label a title; its keys had 16 bytes. */
export const apiKeySpecV1alpha1 = Type.Object({ title: label });

export const apiKeyStatus = Type.Object({
  id: Type.Optional(Type.String({ description: "The id of the key at its issuer." })),
});
export type ApiKeyStatus = Type.Static<typeof apiKeyStatus>;
