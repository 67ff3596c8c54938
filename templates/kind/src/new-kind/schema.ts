import { Type } from "kindstack";

export const newKindSpec = Type.Object({
  text: Type.String({ description: "What the ConfigMap holds.", minLength: 1, maxLength: 1000 }),
});
export type NewKindSpec = Type.Static<typeof newKindSpec>;

export const newKindStatus = Type.Object({
  configMap: Type.String({ description: "The ConfigMap that holds the text; empty while there is none." }),
});
export type NewKindStatus = Type.Static<typeof newKindStatus>;
