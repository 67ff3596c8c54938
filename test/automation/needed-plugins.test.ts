import fs from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { neededPlugins, withPluginFolders } from "../../src/automation/needed-plugins";
import { testDirectory } from "../directories";

let folder: string;

beforeEach(() => {
  folder = testDirectory();
});

function write(file: string, text: string | object): string {
  const whole = path.join(folder, file);
  fs.mkdirSync(path.dirname(whole), { recursive: true });
  fs.writeFileSync(whole, typeof text === "string" ? text : JSON.stringify(text));
  return whole;
}

const needed = (environment: NodeJS.ProcessEnv = {}) =>
  neededPlugins(
    { directory: path.join(folder, "kinds/dist/notice"), capabilities: { sdkRuntime: true } },
    { PULUMI_HOME: folder, ...environment },
  );

describe("the plugins that a kind needs", () => {
  beforeEach(() => {
    fs.mkdirSync(path.join(folder, "kinds/dist/notice"), { recursive: true });
    write("kinds/package.json", {
      name: "kinds",
      dependencies: { "@pulumi/random": "^4", typebox: "^1", absent: "^1" },
      pulumi: { resource: true, name: "keyring", version: "1.0.0" },
    });
    write("kinds/node_modules/typebox/package.json", { name: "typebox", version: "1.0.0" });
    // Where npm puts what several packages of a workspace need.
    const random = { name: "@pulumi/random", version: "4.18.0", pulumi: { resource: true, name: "random" } };
    write("node_modules/@pulumi/random/package.json", random);
  });

  it("are those of its package and of the SDK packages that it depends on", () => {
    expect(needed()).toEqual([
      { name: "keyring", version: "1.0.0", package: "kinds" },
      { name: "random", version: "4.18.0", package: "@pulumi/random" },
    ]);
  });

  it("are found where the engine finds them: on the PATH, and in Pulumi's folder with their version", () => {
    const keyring = write("bin/pulumi-resource-keyring", "");
    write("plugins/resource-random-v4.0.0/pulumi-resource-random", "");
    const environment = { PATH: `/nowhere${path.delimiter}${path.join(folder, "bin")}` };
    expect(needed(environment).map(({ file }) => file)).toEqual([keyring, undefined]);
    const random = write("plugins/resource-random-v4.18.0/pulumi-resource-random", "");
    expect(needed(environment).map(({ file }) => file)).toEqual([keyring, random]);
  });

  it("are found in the package's own folder of plugins", () => {
    const kind = { directory: path.join(folder, "kinds/dist/notice") };
    const environment = withPluginFolders([kind, kind], { PATH: "/bin", HOME: "/root" });
    const keyring = write("kinds/plugins/pulumi-resource-keyring", ""); // made while the operator runs
    expect(environment).toEqual({ PATH: `${path.dirname(keyring)}${path.delimiter}/bin`, HOME: "/root" });
    expect(needed(environment).map(({ file }) => file)).toEqual([keyring, undefined]);
  });

  it("are none of a kind whose program is a plain one", () => {
    expect(neededPlugins({ directory: path.join(folder, "kinds"), capabilities: {} }, {})).toEqual([]);
  });

  it("are none of a kind outside of any package, or in a package.json that is torn", () => {
    write("kinds/package.json", "{");
    expect(needed()).toEqual([]);
  });
});
