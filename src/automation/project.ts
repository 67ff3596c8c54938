/** The Pulumi project that all of Kindstack's stacks belong to. */
export const PROJECT = "kindstack";
