import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { type ModeOption, modeOption, modesOf } from "../../src/cli/operator-options";
import { kinds } from "../../stacks/kinds/index";
import { podSet } from "../../stacks/kinds/podset/kind";
import { tenant } from "../../stacks/kinds/tenant/kind";

function parse(...modes: string[]): ModeOption["mode"] {
  const command = new Command()
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .addOption(modeOption());
  const words = modes.flatMap((mode) => ["--mode", mode]);
  return command.parse(words, { from: "user" }).opts<ModeOption>().mode;
}

describe("--mode", () => {
  it("is for all kinds, and for each by its name", () => {
    const modeOf = modesOf(parse("observe", "podsets=Apply"), kinds);
    expect([modeOf(tenant), modeOf(podSet)]).toEqual(["Observe", "Apply"]);
    expect(modesOf(parse(), kinds)(tenant)).toBeUndefined();
    expect(modesOf(parse("tenants.multitenancy=Observe,podset=Observe"), kinds)(tenant)).toBe("Observe");
  });

  it.each(["Obsreve", "podsets=", "=Observe", "podsets=Observe=Apply"])("refuses %s", (text) => {
    expect(() => parse(text)).toThrow("must be a mode, or <kind>=<mode>; modes are Apply,");
  });

  it("refuses a kind that is not served", () => {
    expect(() => modesOf(parse("things=Observe"), kinds)).toThrow("--mode things=Observe: there is no kind things");
  });
});
