import Type from "typebox";
import { describe, expect, it } from "vitest";
import { KubernetesObject } from "../../../providers/kubernetes/index";
import { declaredBy } from "../../../providers/registration";
import { objectOf } from "../../../src/testing/index";
import { defineKind, type ProgramContext } from "../../../stacks/contract/index";
import { runProgram } from "../../../stacks/contract/run-program";
import { GADGET } from "../../operator/gadget";

const owner = { uid: "u", description: "d" };
const given = { owner, owned: [], recorded: new Set<string>(), watched: [] };

/** Runs a program of a kind that owns Deployments and ConfigMaps. */
function declares(program: (context: ProgramContext) => void) {
  const [configMap, deployment] = [
    { apiVersion: "v1", kind: "ConfigMap" },
    { apiVersion: "apps/v1", kind: "Deployment" },
  ];
  const owns = [configMap, deployment];
  const kind = defineKind({ ...GADGET, spec: Type.Object({}), owns, program: (_, context) => program(context) });
  return declaredBy(() => runProgram(kind, objectOf(kind, {}), given));
}
const make = (resource: string, apiVersion: string, kind: string, name: string) =>
  new KubernetesObject(resource, { owner, manifest: { apiVersion, kind, metadata: { name, namespace: "default" } } });

describe("a kind's program", () => {
  it("is refused for good with a type that owns lacks, with what to add", async () => {
    await expect(declares(() => void make("one", "v1", "Secret", "a"))).rejects.toMatchObject({
      errorClass: "terminal",
      reason: "InvalidProgram",
      message: 'the resource "one" is a Secret of v1: add { apiVersion: "v1", kind: "Secret" } to owns of Gadget',
    });
    await expect(declares(() => void make("one", "apps/v1beta1", "Deployment", "a"))).rejects.toThrow("apps/v1beta1");
  });

  it("is refused for good with two resources for one object, whose names it tells", async () => {
    const twice = () => {
      make("one", "v1", "ConfigMap", "a");
      make("other", "v1", "ConfigMap", "a");
    };
    await expect(declares(twice)).rejects.toMatchObject({
      errorClass: "terminal",
      reason: "InvalidProgram",
      message: 'the resources "one" and "other" are the same object, ConfigMap default/a: declare it once',
    });
  });
});
