import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { controlPlane } from "../control-plane";
import { blocksOf } from "./blocks";
import { followPage, MAIN, missing, Reader } from "./documentation";

describe.skipIf(missing.length > 0)(`a reader (${missing.join(", ") || "nothing"} is missing)`, () => {
  describe("of README.md who tries it", () => {
    const reader = new Reader();
    beforeAll(() => reader.open(MAIN, { KUBE_EDITOR: "sed -i s/admin@yourdomain.com/ops@yourdomain.com/" }));
    afterAll(async () => {
      await reader.run("npx kindstack dev stop");
      await reader.close();
    });

    followPage("README.md", reader, undefined, "Try it");

    it("has nothing running any more", async () => {
      await expect(reader.run("npx kindstack dev status")).rejects.toThrow("no development cluster runs there");
    });
  });

  describe("of README.md", () => {
    const reader = new Reader();
    const folders = { lib: path.join(reader.directory, "lib"), passphrase: path.join(reader.directory, "passphrase") };
    const { PSQL_HOST, PSQL_DBNAME, PSQL_USER, PSQL_PASSWORD } = controlPlane().env;
    beforeAll(async () => {
      await reader.open(MAIN);
      await reader.run(`mkdir ${folders.lib}
        openssl rand -base64 24 > ${folders.passphrase}`);
    });
    afterAll(async () => {
      await reader.run(`kubectl delete tenant.multitenancy/acme postgreswriter/sample-student --timeout=60s
        kubectl delete namespace kindstack-system
        kubectl delete clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings \
          -l app.kubernetes.io/part-of=kindstack`);
      await reader.close();
    });

    followPage(
      "README.md",
      reader,
      () => ({
        "PSQL_HOST=db.example.com": `PSQL_HOST=${PSQL_HOST}`,
        "PSQL_DBNAME=app": `PSQL_DBNAME=${PSQL_DBNAME}`,
        "PSQL_USER=kindstack": `PSQL_USER=${PSQL_USER}`,
        "PSQL_PASSWORD=secret": `PSQL_PASSWORD=${PSQL_PASSWORD}`,
        "/var/lib/kindstack": folders.lib,
        "/run/secrets/passphrase": folders.passphrase,
      }),
      "Run it against your cluster",
    );

    it("makes objects that docs/kinds.md shows", async () => {
      const objects = blocksOf("docs/kinds.md").filter(({ text }) => /^ {2}name: (acme|sample-student)$/m.test(text));
      for (const { text } of objects) {
        await reader.run(`mkdir -p manifests
          cat >> manifests/objects.yaml <<'END'\n---\n${text}END`);
      }
      await reader.run(`kubectl apply -f manifests/
        kubectl wait --for=condition=Ready tenant.multitenancy/acme postgreswriter/sample-student --timeout=60s
        git init --quiet
        git add .
        git -c user.name=a -c user.email=a@example.com commit --quiet -m before
        git update-ref refs/remotes/origin/main HEAD`);
    });
    followPage("README.md", reader, undefined, "Preview in a pull request");
    followPage("README.md", reader, undefined, "Install");
  });
});
