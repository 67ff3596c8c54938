/*
 * A resource plugin that runs as a process of its own, as the SDK's provider package serves it: passwords that it makes
 * up, and entries that it keeps as files in the folder of its configuration. `log` in that folder is what it did.
 */
const { randomBytes } = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");
const grpc = require("@grpc/grpc-js");
const { main } = require("@pulumi/pulumi/provider");

let configuration = {};
/** Memory that is never given back. */
const leaked = [];
const addService = grpc.Server.prototype.addService;
/** The SDK's server does not hand the configuration on to its provider. */
grpc.Server.prototype.addService = function (definition, service) {
  const configure = service.configure.bind(service);
  service.configure = (call, callback) => {
    configuration = call.request.getArgs().toJavaScript();
    configure(call, callback);
  };
  return addService.call(this, definition, service);
};

/** The value of a property that may be a secret on the wire. */
const plain = (property) => property?.value ?? property;

async function untilThere(file, inputs) {
  note("waits");
  while (!fs.existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 20));
  return { id: inputs.path, outs: inputs };
}

function note(words) {
  fs.appendFileSync(path.join(plain(configuration.directory), "log"), `${words}\n`);
}

const types = {
  Password: {
    create: ({ length }, name) => {
      note(`create ${name}`);
      return { id: randomBytes(4).toString("hex"), outs: { length, value: randomBytes(length).toString("hex") } };
    },
    delete: (_props, name) => note(`delete ${name}`),
  },
  Entry: {
    create: (inputs, name) => {
      if (plain(configuration.token) !== "the-token-of-the-vault") throw new Error("the vault refuses the token");
      if (inputs.path === "forbidden") throw new Error("the vault refuses the path forbidden");
      if (inputs.path === "quoted") {
        const words = `${plain(inputs.value)} with ${plain(configuration.token)}`;
        console.error(`keeping ${words}`);
        throw new Error(`cannot keep ${words}`);
      }
      if (inputs.path === "crashes") process.exit(3);
      if (inputs.path === "hangs") {
        note("hangs");
        return new Promise(() => {});
      }
      if (inputs.path === "waits") return untilThere(path.join(plain(configuration.directory), "go"), inputs);
      const [, mebibytes = 0] = /^leaks (\d+) MiB$/.exec(inputs.path) ?? [];
      if (mebibytes > 0) leaked.push(Buffer.alloc(mebibytes * 2 ** 20, 1));
      note(`create ${name}`);
      fs.writeFileSync(path.join(plain(configuration.directory), inputs.path), plain(inputs.value));
      return { id: inputs.path, outs: inputs };
    },
    read: (id, props) => {
      const file = path.join(plain(configuration.directory), id);
      return fs.existsSync(file) ? { id, props: { ...props, value: fs.readFileSync(file, "utf8") } } : {};
    },
    delete: ({ path: file }, name) => {
      note(`delete ${name}`);
      fs.rmSync(path.join(plain(configuration.directory), file), { force: true });
    },
  },
};

/** `urn:pulumi:stack::project::parent$vault:index:Entry::name` */
const typeOf = (urn) => types[urn.split("::")[2].split(":").at(-1)];
const nameOf = (urn) => urn.split("::")[3];

void main(
  {
    version: "1.0.0",
    diff: async (_id, _urn, olds, news) => {
      const replaces = Object.keys(news).filter((name) => JSON.stringify(olds[name]) !== JSON.stringify(news[name]));
      return { changes: replaces.length > 0, replaces, deleteBeforeReplace: true };
    },
    create: async (urn, inputs) => typeOf(urn).create(inputs, nameOf(urn)),
    read: async (id, urn, props) => typeOf(urn).read?.(id, props) ?? { id, props },
    delete: async (_id, urn, props) => typeOf(urn).delete(props, nameOf(urn)),
  },
  process.argv.slice(2),
);
