/** The variables of an operator whose CLIs ask it for the key of a stack, instead of deriving one of the passphrase each. */
export const OWN_KEY_SERVICE: Readonly<Record<string, string>> = { KINDSTACK_SECRETS_PROVIDER: "own" };

/** What the tables say of it. */
export const KEY_SERVICE_NOTE =
  "With the operator's own key service (KINDSTACK_SECRETS_PROVIDER=own), a key is derived of the passphrase once and not by each CLI.";
