import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { TerminalError } from "../providers/errors";
import { inCluster, readStateConfig } from "../src/config";
import { testDirectory } from "./directories";

let directory: string;
beforeEach(async () => {
  directory = testDirectory();
});

/** Reads the configuration from these variables, with a work directory of the test's own. */
const read = (variables: NodeJS.ProcessEnv = {}) =>
  readStateConfig({ KINDSTACK_WORK_DIR: join(directory, "work"), ...variables });

describe("the backend", () => {
  it("is a folder of the work directory unless a variable names another", () => {
    expect(read().backendUrl).toBe(`file://${join(directory, "work", "state")}`);
  });

  it.each([
    "file:///var/state",
    "postgres://user:pw@host/db?table=t",
    "s3://bucket",
    "gs://bucket",
    "azblob://container",
  ])("may be %s", (url) => {
    expect(read({ PULUMI_BACKEND_URL: url }).backendUrl).toBe(url);
  });

  it("may be nothing else, and the message names the variable, the scheme and what is allowed, not the password", () => {
    const reading = () => read({ PULUMI_BACKEND_URL: "mysql://user:secret@host/db" });
    expect(reading).toThrow(TerminalError);
    expect(reading).toThrow(
      /^PULUMI_BACKEND_URL: mysql:\/\/ is not one of file:\/\/, postgres:\/\/, s3:\/\/, gs:\/\/, azblob:\/\/$/,
    );
  });

  it.each(["host=db password=hunter22", "u:hunter22@db/state", "mysql://u:hunter22@db"])(
    "is not shown when it is none: %s",
    (url) => {
      expect(() => read({ PULUMI_BACKEND_URL: url })).toThrow("PULUMI_BACKEND_URL: ");
      expect(() => read({ PULUMI_BACKEND_URL: url })).not.toThrow("hunter22");
    },
  );

  it("may not be Pulumi's own service", () => {
    expect(() => read({ PULUMI_BACKEND_URL: "https://api.pulumi.com" })).toThrow(/PULUMI_BACKEND_URL: https/);
  });
});

describe("the passphrase", () => {
  const fileWith = async (text: string) => {
    const file = join(directory, "given");
    await writeFile(file, text);
    return file;
  };

  it("is taken from the file that a variable names, also an empty one", async () => {
    for (const text of ["secret\n", "\n"]) {
      const file = await fileWith(text);
      expect(read({ PULUMI_CONFIG_PASSPHRASE_FILE: file }).protection.passphrase).toEqual({ file });
    }
  });

  it("is taken from a variable, also an empty one, before the file", async () => {
    const file = await fileWith("other");
    for (const value of ["secret", ""]) {
      const variables = { PULUMI_CONFIG_PASSPHRASE: value, PULUMI_CONFIG_PASSPHRASE_FILE: file };
      expect(read(variables).protection.passphrase).toEqual({ value });
      expect(read({ ...variables, KINDSTACK_SECRETS_PROVIDER: "awskms://k" }).protection.passphrase).toEqual({ value });
    }
  });

  it("is refused when its file is missing", () => {
    const file = join(directory, "missing");
    expect(() => read({ PULUMI_CONFIG_PASSPHRASE_FILE: file })).toThrow(
      `PULUMI_CONFIG_PASSPHRASE_FILE: there is no file ${file}`,
    );
  });

  it("is never made up in a cluster: the message says what to do", () => {
    const reading = () => read({ KUBERNETES_SERVICE_HOST: "10.0.0.1" });
    expect(reading).toThrow(TerminalError);
    expect(reading).toThrow(/mount a Secret .* PULUMI_CONFIG_PASSPHRASE_FILE/);
  });

  it("is made in development, once, for the owner's eyes alone", async () => {
    const [first, second] = [read(), read()].map(({ protection }) => protection.passphrase) as { file: string }[];
    expect(second).toEqual(first);
    const text = await readFile(first?.file ?? "", "utf8");
    expect(text.trim().length).toBeGreaterThanOrEqual(32);
    expect((await stat(first?.file ?? "")).mode & 0o777).toBe(0o600);
  });

  it("that was made once is not made again when only its mode was changed", async () => {
    const { file } = read().protection.passphrase as { file: string };
    const before = await readFile(file, "utf8");
    await chmod(file, 0o640);
    read();
    expect(await readFile(file, "utf8")).toBe(before);
  });
});

describe("a key service", () => {
  it.each(["awskms://alias/k?region=eu-west-1", "azurekeyvault://v/k", "gcpkms://p", "hashivault://kindstack"])(
    "may be %s, and needs no passphrase, not even in a cluster",
    (url) => {
      const variables = { KINDSTACK_SECRETS_PROVIDER: url, KUBERNETES_SERVICE_HOST: "10.0.0.1" };
      expect(read(variables).protection).toEqual({ keyService: url, passphrase: undefined });
    },
  );

  it("has the passphrase beside it, if there is one, for the states that it still protects", () => {
    const variables = { KINDSTACK_SECRETS_PROVIDER: "hashivault://kindstack", PULUMI_CONFIG_PASSPHRASE: "secret" };
    expect(read(variables).protection.passphrase).toEqual({ value: "secret" });
  });

  it("needs no file of a passphrase, though it is named", () => {
    const file = join(directory, "missing");
    const variables = { KINDSTACK_SECRETS_PROVIDER: "hashivault://kindstack", PULUMI_CONFIG_PASSPHRASE_FILE: file };
    expect(read(variables).protection.passphrase).toBeUndefined();
  });

  it("may be nothing else, and the message says what is allowed", () => {
    expect(() => read({ KINDSTACK_SECRETS_PROVIDER: "own" })).toThrow(/: its value is not one of awskms/);
    expect(() => read({ KINDSTACK_SECRETS_PROVIDER: "vault" })).toThrow(
      "KINDSTACK_SECRETS_PROVIDER: its value is not one of awskms://, azurekeyvault://, gcpkms://, hashivault://, " +
        "or nothing for a passphrase",
    );
  });
});

it("inCluster is told by the variable that every Pod has", () => {
  expect(inCluster({ KUBERNETES_SERVICE_HOST: "10.0.0.1" })).toBe(true);
  expect(inCluster({})).toBe(false);
});
