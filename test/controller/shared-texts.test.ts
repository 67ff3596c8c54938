import { expect, it } from "vitest";
import { textSharing } from "../../src/controller/shared-texts";

const object = (index: number, status?: unknown) =>
  JSON.parse(
    JSON.stringify({
      apiVersion: "demo.example.com/v1",
      kind: "Sample",
      metadata: {
        name: `n${index}`,
        uid: `u${index}`,
        resourceVersion: `${index}`,
        finalizers: ["kindstack.dev/stack"],
      },
      spec: { text: "kept" },
      status: status ?? {
        conditions: [
          { type: "Ready", status: "True", reason: "Ready", message: `m${index % 7}`, observedGeneration: 1 },
        ],
      },
    }),
  );

it("leaves what objects say, also with more texts than it keeps", () => {
  const share = textSharing();
  for (let index = 0; index < 3_000; index++) {
    const message = `only of ${index}`;
    const own = { conditions: [{ type: "Ready", message }] };
    expect(share(object(index))).toEqual(object(index));
    expect(share(object(index, own))).toEqual(object(index, own));
  }
});

it.each([null, "text", {}, { conditions: null }, { conditions: "text" }, { conditions: [null, "text", 1, ["a"]] }])(
  "leaves a status that is no status of ours: %j",
  (status) => expect(textSharing()(object(1, status))).toEqual(object(1, status)),
);
