import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { parse as parseYaml } from "yaml";
import { configurationSchema, keySchemas } from "../../../stacks/platform/configuration";
import { parseConfiguration } from "../../../stacks/platform/parse-configuration";

const parse = (values: Record<string, string> = {}) => parseConfiguration(values, "1.2.3");

describe("the configuration", () => {
  it("is complete with nothing set", () => {
    expect(parse()).toMatchObject({
      install: false,
      manifests: [],
      image: "kindstack:1.2.3",
      namespace: "kindstack-system",
      stateSecret: "kindstack-state",
      concurrency: 8,
      egressPorts: [443, 6443],
    });
  });

  it("reads numbers, switches, lists and maps from the texts that Pulumi hands out", () => {
    const parsed = parse({
      install: "true",
      concurrency: "9",
      egressPorts: "[443]",
      serviceAccountAnnotations: '{"role":"r"}',
    });

    expect(parsed).toMatchObject({
      install: true,
      concurrency: 9,
      egressPorts: [443],
      serviceAccountAnnotations: { role: "r" },
    });
  });

  it.each(["crs", '["crs"]'])("takes one path for a list of one: %s", (text) => {
    expect(parse({ manifests: text }).manifests).toEqual(["crs"]);
  });

  it.each([
    [{ concurrency: "many" }, 'kindstack:concurrency: "many" must be integer'],
    [{ concurrency: "0" }, 'kindstack:concurrency: "0" must be >= 1'],
    [{ logLevel: "loud" }, 'kindstack:logLevel: "loud" must be one of trace, debug, info, warn, error'],
    [{ networkPolicy: "yes" }, 'kindstack:networkPolicy: "yes" must be boolean'],
    [{ namespace: "Not_A_Name" }, 'kindstack:namespace: "Not_A_Name" must match pattern'],
    [{ storageSize: "much" }, 'kindstack:storageSize: "much" must match pattern'],
    [{ egressPorts: '["https"]' }, "kindstack:egressPorts: "],
    [{ backendUrl: "file:///elsewhere", passphrase: "p" }, "kindstack:backendUrl: its value must match pattern"],
    [{ replicsa: "2" }, "kindstack:replicsa is not a key of the configuration: install, manifests, image"],
    [{ constructor: "2" }, "kindstack:constructor is not a key of the configuration"],
    [{ replicas: "2" }, "kindstack:replicas: 2 need a backendUrl of postgres://"],
    [{ replicas: "0" }, 'kindstack:replicas: "0" must be >= 1'],
    [{ backendFromSecret: "true", backendUrl: "s3://bucket" }, "backendUrl exclude each other"],
    [{ backendFromSecret: "true", passphrase: "p" }, "needs an existing Secret"],
    [{ postgresHost: "db" }, "kindstack:postgresPassword: must be given with postgresHost"],
    [{ postgresUser: "u" }, "kindstack:postgresUser: needs postgresHost"],
  ])("refuses %j", (values, message) => {
    expect(() => parse(values as Record<string, string>)).toThrow(message);
  });

  it.each([
    "postgres://user:hunter2@db/state",
    "postgres://user:hunt/er2@hunter2@db/state",
    "postgres://db/state?user=u&password=hunter2",
    "s3://bucket?region=eu&aws_secret=hunter2",
  ])("does not put a backend's password where everybody may read it, and does not show it: %s", (backendUrl) => {
    const refuse = () => parse({ backendUrl });

    expect(refuse).toThrow("has a password; put it under the key backendUrl into stateSecret");
    expect(refuse).not.toThrow("hunter2");
  });

  it("puts a URL without a password into the Deployment", () => {
    for (const backendUrl of ["postgres://db:5432/state", "s3://bucket?region=eu", "gs://bucket"])
      expect(parse({ backendUrl })).toMatchObject({ backendUrl });
  });

  it("names all mistakes at once", () => {
    expect(() => parse({ concurrency: "0", logLevel: "loud" })).toThrow(/concurrency.*\n.*logLevel/);
  });

  it("describes every key", () => {
    for (const [key, { description }] of keySchemas) expect(description, key).toMatch(/\w{3}/);
  });
});

describe("Pulumi.yaml", () => {
  const { config } = parseYaml(fs.readFileSync(path.resolve(__dirname, "../../../Pulumi.yaml"), "utf8")) as {
    config: Record<string, { type?: string; description?: string; default?: unknown; value?: unknown }>;
  };

  // A key without a default would have to be set in every stack, and a list could not be given as one value.
  it("declares each key that has a default and is no list, as the schema does", () => {
    const declared = Object.entries(configurationSchema.properties as object)
      .map(([key, { type = "string", description, default: value }]) => ({ key, type, description, default: value }))
      .filter(({ type, default: value }) => value !== undefined && !["array", "object"].includes(type as string));
    const { "kubernetes:upsertExistingObjects": _, "kubernetes:enableSecretMutable": __, ...own } = config;

    expect(Object.entries(own).map(([key, declaration]) => ({ key, ...declaration }))).toEqual(declared);
  });

  it("lets the provider take over what exists, and change Secrets in place", () => {
    expect(config["kubernetes:upsertExistingObjects"]).toEqual({ value: true });
    expect(config["kubernetes:enableSecretMutable"]).toEqual({ value: true });
  });
});
