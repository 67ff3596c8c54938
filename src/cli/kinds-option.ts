import { InvalidArgumentError, Option } from "commander";
import { selectKinds } from "../../stacks/contract/kind-name";
import { kinds } from "../../stacks/index";

/** `--kinds tenants.multitenancy,postgreswriters`: the option's value is the chosen kinds, by default all. */
export function kindsOption(description: string): Option {
  return new Option("--kinds <names>", `${description}, such as tenants.multitenancy,postgreswriters`)
    .default(kinds, "all")
    .argParser((text) => {
      try {
        return selectKinds(
          kinds,
          text.split(",").map((name) => name.trim()),
        );
      } catch (error) {
        throw new InvalidArgumentError(`${(error as Error).message}.`);
      }
    });
}
