import { expect, it } from "vitest";
import { textSharing } from "../../src/controller/shared-texts";
import { liveObject } from "../objects";

const object = (index: number, status: unknown = conditionsOf({ status: "True", message: `m${index % 7}` })) => {
  const metadata = { name: `n${index}`, resourceVersion: `${index}`, finalizers: ["kindstack.dev/stack"] };
  return structuredClone(liveObject({ metadata, spec: { text: "kept" }, status }));
};
const conditionsOf = (condition: object) => {
  return { conditions: [{ type: "Ready", reason: "Ready", observedGeneration: 1, ...condition }] };
};

it("leaves what objects say, also with more texts than it keeps", () => {
  const share = textSharing();
  for (let index = 0; index < 3_000; index++) {
    const own = conditionsOf({ message: `only of ${index}` });
    expect(share(object(index))).toEqual(object(index));
    expect(share(object(index, own))).toEqual(object(index, own));
  }
});

it.each([null, "text", {}, { conditions: null }, { conditions: "text" }, { conditions: [null, "text", 1, ["a"]] }])(
  "leaves a status that is no status of ours: %j",
  (status) => expect(textSharing()(object(1, status))).toEqual(object(1, status)),
);
