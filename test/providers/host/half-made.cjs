const fs = require("node:fs");
const path = require("node:path");

/**
 * A provider of folders with a number of files, which fails after the second while there is a file `fail` beside the folder. It is
 * loaded with Kindstack's sources by the operator's host, and with the compiled ones by Pulumi's script.
 */
const make = ({ defineProvider, DynamicResource, RetryableError }) => {
  const write = (inputs) => {
    const outs = { ...inputs, made: 0, token: "halfway-secret" };
    fs.mkdirSync(inputs.folder, { recursive: true });
    while (outs.made < inputs.files) {
      if (outs.made === 2 && fs.existsSync(path.join(inputs.folder, "../fail"))) {
        throw new RetryableError("Unreachable", "the third file cannot be written", {
          made: { id: inputs.folder, outs },
        });
      }
      outs.made++;
      fs.writeFileSync(path.join(inputs.folder, String(outs.made)), "");
    }
    return outs;
  };
  const { stub, provider } = defineProvider(__filename, {
    check: async (_olds, news) => ({ inputs: news, failures: [] }),
    // It does not look at what was made: that it is incomplete is known without.
    diff: async (_id, olds, news) => ({ changes: olds.files !== news.files }),
    create: async (inputs) => ({ id: inputs.folder, outs: write(inputs) }),
    read: async (id, outs) => (fs.existsSync(id) ? { id, props: outs } : {}),
    update: async (_id, _olds, news) => ({ outs: write(news) }),
    delete: async (id) => fs.rmSync(id, { recursive: true }),
    release: async () => {},
  });
  class Folder extends DynamicResource {
    constructor(name, inputs) {
      const outputs = { made: undefined, token: undefined };
      super(
        { module: "test", name: "Folder", stub },
        name,
        { ...inputs, ...outputs },
        { additionalSecretOutputs: ["token"] },
      );
    }
  }
  return { stub, provider, Folder };
};

module.exports = {
  make,
  get provider() {
    return make(require("kindstack")).provider;
  },
};
