import { expect, it } from "vitest";
import { CREATED_ANNOTATION, OWNER_ANNOTATION, OWNER_UID_LABEL } from "../../providers/kubernetes/ownership";
import { eventually } from "../../src/testing/eventually";
import { conditionOf, untilGone, untilSynced } from "./conditions";
import { deploymentOf, memcached, uniqueName } from "./manifests";
import { apply, client, edit, eventsAbout, find, get, remove } from "./objects";
import { useOperator } from "./operator";

useOperator();

it("a deletion removes what carries the object's mark and is in no state, and an Event tells of it", async () => {
  const object = memcached(uniqueName("marked"), { size: 1 });
  await apply(object);
  await untilSynced(object);
  const made = await get(deploymentOf(object));
  const { selector, template } = made.spec as Record<string, unknown>;
  const left = await client.apply({
    ...{ apiVersion: "apps/v1", kind: "Deployment" },
    metadata: {
      ...{ name: `${made.metadata.name}-left`, namespace: "default" },
      labels: { [OWNER_UID_LABEL]: made.metadata.labels?.[OWNER_UID_LABEL] ?? "" },
      annotations: {
        [OWNER_ANNOTATION]: made.metadata.annotations?.[OWNER_ANNOTATION] ?? "",
        [CREATED_ANNOTATION]: "true",
      },
    },
    spec: { selector, template },
  });
  const owner = await get(object);
  // The operator repairs this, which shows that it has seen what was made before.
  await edit(made, { spec: { replicas: 3 } });
  await eventually(async () => expect((await get(made)).spec).toMatchObject({ replicas: 1 }));

  // Whatever the deletion cuts off and the caches show, it ends only when that has gone.
  await edit(left.object, { metadata: { finalizers: ["example.com/hold"] } });
  await remove(object);
  const told = async () => conditionOf(await get(object), "Synced").message;
  await eventually(async () => expect(await told()).toContain("waits for: its finalizers example.com/hold"));
  await edit(left.object, { metadata: { finalizers: null } });
  await untilGone(object);

  expect(await find(left.object)).toBeUndefined();
  const notes = async () => (await eventsAbout(owner)).map(({ note }) => note);
  const note = `removed Deployment default/${left.object.metadata.name}, which its stack did not have`;
  await eventually(async () => expect(await notes()).toContain(note));
});
