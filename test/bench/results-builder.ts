import type { Figure, Results, Section, SizePoint } from "../../bench/results";

/** A figure as a bench might give it; what matters to a test is said by the test. */
export function figure(overrides: Partial<Figure> = {}): Figure {
  return { what: "created", value: 6, unit: "s", ...overrides };
}

export function sizePoint(objects: number, seconds: number, overrides: Partial<SizePoint> = {}): SizePoint {
  return {
    objects,
    seconds,
    cpuSeconds: seconds / 2,
    residentMiB: 100 + objects / 10,
    peakMiB: 200 + objects / 10,
    stateBytes: objects * 4096,
    objectBytes: objects * 2048,
    requests: objects * 3,
    ...overrides,
  };
}

export function section(overrides: Partial<Section> = {}): Section {
  return { id: "burst", title: "Many at once", notes: ["As fast as can be."], figures: [figure()], ...overrides };
}

export function results(...sections: Section[]): Results {
  return {
    quick: false,
    measuredAt: "2026-01-02T03:04:05.000Z",
    seconds: 601,
    machine: { cpu: "Example 1000", cores: 2, memoryGiB: 8, system: "Linux 6.1.0" },
    versions: { Kindstack: "0.1.0", Pulumi: "3.260.0" },
    sections,
  };
}
