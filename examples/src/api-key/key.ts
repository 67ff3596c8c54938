import type { Output } from "@pulumi/pulumi/output";
import { CustomResource, type CustomResourceOptions } from "@pulumi/pulumi/resource";

/** A key of the plugin `keyring`. Of a published plugin, its SDK package has such a class. */
export class Key extends CustomResource {
  declare readonly value: Output<string>;
  declare readonly keyId: Output<string>;

  constructor(name: string, inputs: { label: string; length: number }, options?: CustomResourceOptions) {
    super(
      "keyring:index:Key",
      name,
      { ...inputs, value: undefined, keyId: undefined },
      {
        ...options,
        additionalSecretOutputs: ["value"],
      },
    );
  }
}
