import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { Compile } from "typebox/compile";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { LiveObject } from "../../providers/kubernetes/client";
import { OBJECT_STUB } from "../../providers/kubernetes/object";
import { unescapeReserved } from "../../providers/literal";
import { ROW_STUB } from "../../providers/postgres/row";
import type { DynamicProvider, Properties } from "../../providers/provider";
import { declaredBy as registeredBy } from "../../providers/registration";
import { PROVIDER_PROPERTY } from "../../providers/resource-options";
import { served } from "../../providers/served";
import { type AnyKind, ownerDescription, parseServed } from "../../stacks/contract/kind";
import { objectKey } from "../../stacks/contract/object";
import { runProgram } from "../../stacks/contract/run-program";
import { kinds } from "../../stacks/kinds";
import { podSet } from "../../stacks/kinds/podset/kind";
import type { SpecSchema } from "../faults/spec-arbitrary";
import { almostReserved } from "../reserved";
import { labelled } from "../stacks/kinds/capsule-tenant/objects";
import { TestEngine } from "./test-engine";

/* Which texts a user may write is the schema's business; what the engine makes of them, the real one shows. */

/** What it was asked to create, and to keep as it is. */
class Recorder implements DynamicProvider<Properties, Properties> {
  created: Properties[] = [];
  compared: [olds: Properties, news: Properties][] = [];

  check = async (_olds: Properties, news: Properties) => ({ inputs: news, failures: [] });
  async diff(_id: string, olds: Properties, news: Properties) {
    this.compared.push([olds, news]);
    return { changes: false };
  }
  async create(inputs: Properties) {
    this.created.push(inputs);
    return { id: `thing-${this.created.length}`, outs: inputs };
  }
  read = async (id: string, props: Properties) => ({ id, props });
  update = async (_id: string, _olds: Properties, outs: Properties) => ({ outs });
  async delete() {}
  async release() {}
}

const recorder = new Recorder();
const provider = served(recorder);
let engine: TestEngine;
beforeAll(async () => {
  const providers = [OBJECT_STUB, ROW_STUB].map((stub) => [stub, provider] as [string, typeof provider]);
  engine = await TestEngine.open(undefined, {}, providers);
  return () => engine.close();
});

/** A text for the next field that is asked about; the same again and again where there are fewer. */
type Texts = () => string;

/** A value of which each string, and each key of a map, is replaced where the schema allows that. */
function withTexts(schema: SpecSchema, value: unknown, next: Texts): unknown {
  if (typeof value === "string") {
    const text = next();
    const isAllowed = schema.enum === undefined && Compile(schema as never).Check(text);
    return isAllowed ? text : value;
  }
  if (Array.isArray(value)) return value.map((item) => withTexts(schema.items ?? {}, item, next));
  if (typeof value !== "object" || value === null) return value;
  const { properties = {}, additionalProperties: others = {} } = schema;
  const isMap = schema.properties === undefined;
  const entries = Object.entries(value).map(([key, item]) => [
    isMap ? next() : key,
    withTexts(properties[key] ?? others, item, next),
  ]);
  return Object.fromEntries(entries);
}

function sampleOf(kind: AnyKind): LiveObject {
  const sample = parse(fs.readFileSync(path.join(kind.directory, "sample.yaml"), "utf8")) as LiveObject;
  return { ...sample, metadata: { ...sample.metadata, uid: "uid", resourceVersion: "1", generation: 1 } };
}

/** The sample of a kind with these texts in it and, where it can be, as its name. */
async function hostile(kind: AnyKind, texts: readonly string[]): Promise<LiveObject> {
  let asked = 0;
  const next = () => texts[asked++ % texts.length] as string;
  const sample = sampleOf(kind);
  const name = texts.find((text) => /^[0-9a-f-]+$/.test(text)) ?? sample.metadata.name;
  const spec = withTexts(kind.spec as SpecSchema, sample.spec, next);
  const object = { ...sample, metadata: { ...sample.metadata, name, namespace: "default" }, spec };
  try {
    await parseServed(kind, object);
    return object;
  } catch {
    return { ...object, spec: sample.spec }; // what the kind refuses for other reasons
  }
}

function programOf(kind: AnyKind, object: LiveObject): () => void | Promise<void> {
  const key = objectKey(object.metadata);
  const owner = { uid: "uid", description: ownerDescription(kind, key) };
  const watched = [labelled("oil-dev", object.metadata.name)];
  return async () =>
    runProgram(kind, await parseServed(kind, object), { owner, owned: [], recorded: new Set(), watched });
}

/** What a program declares, as users wrote it. */
async function declaredBy(program: () => void | Promise<void>): Promise<Properties[]> {
  const declared = await registeredBy(program);
  return unescapeReserved(declared.map(({ inputs }) => inputs as Properties));
}

const sorted = (all: readonly Properties[]) =>
  all.map(({ [PROVIDER_PROPERTY]: _, ...properties }) => JSON.stringify(inOrder(properties))).sort();

/** Properties in the order of their names: the engine keeps no other. */
function inOrder(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(inOrder);
  const entries = Object.entries(value).map(([name, property]) => [name, inOrder(property)] as const);
  return Object.fromEntries(entries.sort(([one], [other]) => (one < other ? -1 : 1)));
}

describe("texts that the engine reserves", () => {
  // A PodSet has no texts but its name, and gives its Pods names that are others each time.
  it.each(kinds.filter((kind) => kind !== podSet).map((kind) => [`${kind.kind}.${kind.group}`, kind] as const))(
    "reach the providers of a %s as they were written, and are the same in its state",
    async (name, kind) => {
      let run = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(almostReserved, { minLength: 8, maxLength: 8 }), async (texts) => {
          const program = programOf(kind, await hostile(kind, texts));
          const stack = `${name}-${run++}`;
          recorder.created = [];
          recorder.compared = [];

          const first = await engine.engine.up(stack, program);
          const second = await engine.engine.up(stack, program);

          expect([first.failures, second.failures]).toEqual([[], []]);
          const declared = await declaredBy(program);
          expect(sorted(recorder.created)).toEqual(sorted(declared));
          expect(recorder.compared).toHaveLength(declared.length);
          for (const [olds, news] of recorder.compared) expect(olds).toEqual(news);
          expect(sorted(first.resources.map(({ outputs }) => outputs))).toEqual(sorted(recorder.created));
        }),
        { numRuns: 2, seed: 1, examples: [[["04da6b54-80e4-46f7-96ec-b56ff0331ba9"]]] },
      );
    },
  );
});
