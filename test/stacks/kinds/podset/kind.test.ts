import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { TerminalError } from "../../../../providers/errors";
import type { LiveObject } from "../../../../providers/kubernetes/client";
import { parseObject } from "../../../../stacks/contract/kind";
import { podSet } from "../../../../stacks/kinds/podset/kind";
import { podSetObject } from "./objects";

describe("PodSet", () => {
  it("takes its sample", () => {
    const sample = parse(fs.readFileSync(path.join(podSet.directory, "sample.yaml"), "utf8"));
    expect(parseObject(podSet, sample)).toBe(sample);
  });

  it.each([0, 1, 1000])("takes %i replicas", (replicas) => {
    expect(parseObject(podSet, podSetObject(replicas)).spec).toEqual({ replicas });
  });

  it.each([-1, 1.5, "2"])("refuses %j replicas and names the field", (replicas) => {
    const object: LiveObject = { ...podSetObject(1), spec: { replicas } };
    expect(() => parseObject(podSet, object)).toThrow(TerminalError);
    expect(() => parseObject(podSet, object)).toThrow("spec.replicas");
  });
});
