/** The variables of an operator that starts a CLI process for each update, as it does where there is no Pulumi server. */
export const WITHOUT_SERVER: Readonly<Record<string, string>> = { KINDSTACK_PULUMI_SERVER: "none" };

/** What the tables say of it. */
export const WITHOUT_SERVER_NOTE =
  "Without the Pulumi server (KINDSTACK_PULUMI_SERVER=none), the operator starts a CLI process for each update.";
