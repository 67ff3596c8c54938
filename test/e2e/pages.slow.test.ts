import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import type { Manifest } from "../../providers/kubernetes/client";
import { freePort } from "../../src/dev/ports";
import { eventually } from "../../src/testing/eventually";
import { controlPlane } from "../control-plane";
import { TestDatabase } from "../providers/postgres/database";
import { followPage, MAIN, missing, Reader, ROOT } from "./documentation";
import { namespace, tenant } from "./manifests";
import { apply, remove } from "./objects";

describe.skipIf(missing.length > 0)(`a reader (${missing.join(", ") || "nothing"} is missing)`, () => {
  describe("of install.md", () => {
    const state = new TestDatabase(controlPlane().env);
    const reader = new Reader();
    const { PSQL_HOST, PSQL_DBNAME, PSQL_USER, PSQL_PASSWORD } = controlPlane().env;
    beforeAll(async () => {
      await state.open();
      await reader.open(MAIN, { DOCS_POD: "true" });
      fs.cpSync(
        path.join(ROOT, "stacks/kinds/tenant/sample.yaml"),
        path.join(reader.home, "stacks/kinds/tenant/sample.yaml"),
      );
    });
    afterAll(async () => {
      await reader.close();
      await state.close();
    });

    followPage("docs/install.md", reader, () => ({
      "postgres://kindstack:secret@db.example.com:5432/state": state.backendUrl(),
      "PSQL_HOST=db.example.com": `PSQL_HOST=${PSQL_HOST}`,
      "PSQL_DBNAME=app": `PSQL_DBNAME=${PSQL_DBNAME}`,
      "PSQL_USER=kindstack": `PSQL_USER=${PSQL_USER}`,
      "PSQL_PASSWORD=secret": `PSQL_PASSWORD=${PSQL_PASSWORD}`,
    }));

    it("has nothing of admission left after its uninstallation", async () => {
      await eventually(async () =>
        expect(
          await reader.run(
            "kubectl get mutatingwebhookconfigurations,validatingadmissionpolicies,clusterroles,clusterrolebindings -l kindstack.dev/admission -o name",
          ),
        ).toBe(""),
      );
    });
  });

  describe("of admission.md and capsule.md", () => {
    const reader = new Reader();
    beforeAll(async () => {
      await reader.open(MAIN, { PULUMI_BACKEND_URL: `file://${reader.directory}/state` });
      await reader.run(`mkdir -p ${reader.directory}/state stacks/kinds
        ln -s ${ROOT}/stacks/kinds/capsule-tenant stacks/kinds/capsule-tenant
        operator start run --install-crds --admission-port 0`);
    });
    afterAll(async () => {
      await reader.run(`kubectl delete tenants.capsule oil --ignore-not-found --timeout=60s
        kubectl delete clusterrole,clusterrolebinding kindstack-bind --ignore-not-found
        kubectl delete namespace oil-staging --ignore-not-found --timeout=60s
        operator stop
        kubectl delete mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings,clusterroles,clusterrolebindings -l kindstack.dev/admission`);
      await reader.close();
    });

    followPage("docs/admission.md", reader);
    followPage("docs/capsule.md", reader);
  });

  describe("of modes.md", () => {
    const reader = new Reader();
    beforeAll(async () => {
      await reader.open(MAIN, { PULUMI_BACKEND_URL: `file://${reader.directory}/state` });
      await reader.run(`mkdir -p ${reader.directory}/state stacks
        ln -s ${ROOT}/stacks/kinds stacks/kinds
        operator start run --install-crds --kinds podsets`);
    });
    afterAll(async () => {
      await reader.run("operator stop");
      await reader.close();
    });

    followPage("docs/modes.md", reader);
  });

  describe("of approve-changes.md", () => {
    const reader = new Reader();
    beforeAll(async () => {
      await reader.open(MAIN, {
        PULUMI_BACKEND_URL: `file://${reader.directory}/state`,
        PULUMI_CONFIG_PASSPHRASE: "secret",
      });
      await reader.run(`mkdir -p ${reader.directory}/state stacks
        ln -s ${ROOT}/stacks/kinds stacks/kinds
        operator start run --install-crds --kinds podsets,memcacheds`);
    });
    afterAll(async () => {
      await reader.run("operator stop");
      await reader.close();
    });

    followPage("docs/approve-changes.md", reader);
  });

  describe("of operate.md", () => {
    const reader = new Reader();
    const passphraseFolder = path.join(reader.directory, "etc");
    const [state, restored] = [new TestDatabase(controlPlane().env), new TestDatabase(controlPlane().env)];
    const [acme, globex] = [
      tenant("acme", { namespaces: ["acme-dev"] }),
      tenant("globex", { namespaces: ["globex-dev"] }),
    ];
    beforeAll(async () => {
      await Promise.all([state, restored].map((database) => database.open()));
      await reader.open(MAIN, { KINDSTACK_NAMESPACE: "kindstack-system" });
      await reader.run(`mkdir -p ${passphraseFolder}
        openssl rand -base64 24 > ${passphraseFolder}/passphrase
        printf 'backendFromSecret: true\\npostgresTables: students\\n' > values.yaml
        npx kindstack install --print --values values.yaml | kubectl apply --server-side -f -
        kubectl create secret generic kindstack-state -n kindstack-system --from-file=${passphraseFolder}/passphrase \
          --from-literal=backendUrl='${state.backendUrl()}'
        operator deploy`);
      await Promise.all([acme, globex].map(apply));
      await reader.run(
        "kubectl wait --for=condition=Ready tenant.multitenancy/acme tenant.multitenancy/globex --timeout=60s",
      );
    });
    afterAll(async () => {
      await reader.run(`kubectl delete tenants.multitenancy --all --timeout=60s
        kubectl delete namespace globex-dev --wait=false
        kubectl delete namespace kindstack-system
        kubectl delete clusterrole,clusterrolebinding kindstack`);
      await reader.close();
      await Promise.all([state, restored].map((database) => database.close()));
    });

    followPage("docs/operate.md", reader, () => ({
      "postgres://kindstack:secret@db.example.com:5432/state": state.backendUrl(),
      "postgres://kindstack:secret@db.example.com:5432/restored": restored.backendUrl(),
      "/etc/kindstack": passphraseFolder,
    }));

    followPage("docs/alerts.md", reader);
    followPage("docs/console.md", reader);

    it("has one operator at the end that works on the restored state with the new passphrase", async () => {
      const history = await reader.run("npx kindstack history tenant.multitenancy acme -o json");
      expect(JSON.parse(history)[0]).toMatchObject({ kind: "update", result: "succeeded" });
      expect(await reader.run("echo $PULUMI_BACKEND_URL")).toBe(`${restored.backendUrl()}\n`);
      const { backendUrl } = JSON.parse(
        await reader.run("kubectl get secret kindstack-state -n kindstack-system -o jsonpath='{.data}'"),
      );
      expect(Buffer.from(backendUrl, "base64").toString()).toBe(restored.backendUrl());
    });
  });

  describe("of preview-in-ci.md", () => {
    const reader = new Reader();
    const ports = { "9444": "" };
    beforeAll(async () => {
      await reader.open(MAIN, {
        PULUMI_BACKEND_URL: `file://${reader.directory}/state`,
        PULUMI_CONFIG_PASSPHRASE: "secret",
        KINDSTACK_NAMESPACE: "kindstack-system",
      });
      ports["9444"] = String(await freePort());
      await reader.run(`mkdir -p manifests ${reader.directory}/state
        kubectl create namespace kindstack-system
        operator start run --install-crds --preview-port ${ports["9444"]}
        cp ${ROOT}/stacks/kinds/tenant/sample.yaml manifests/tenant.yaml
        kubectl apply -f manifests/tenant.yaml
        kubectl wait --for=condition=Ready tenant.multitenancy/tenant-sample --timeout=60s
        git init --quiet
        git add .
        git -c user.name=a -c user.email=a@example.com commit --quiet -m before
        git update-ref refs/remotes/origin/main HEAD
        sed -i s/admin@yourdomain.com/other@yourdomain.com/ manifests/tenant.yaml`);
    });
    afterAll(async () => {
      await reader.run(
        "kubectl delete tenants.multitenancy --all --timeout=60s; kubectl delete -f preview-access.yaml; kubectl delete namespace kindstack-system",
      );
      await reader.close();
    });

    followPage("docs/preview-in-ci.md", reader, () => ports);

    it("has a report on what the pull request changes", () => {
      const report = fs.readFileSync(path.join(reader.home, "preview.md"), "utf8");
      expect(report).toContain("tenant-sample");
      expect(report).toContain("other@yourdomain.com");
    });
  });

  describe("of proxy.md", () => {
    const reader = new Reader();
    const ports = { "9443": "", "8081": "" };
    beforeAll(async () => {
      await reader.open(MAIN);
      for (const port of ["9443", "8081"] as const) ports[port] = String(await freePort());
      await reader.run("echo 'postgresTables: students' > values.yaml");
    });
    afterAll(async () => {
      await reader.run(`if [ -f proxy.pid ]; then kill "$(cat proxy.pid)" 2>/dev/null || true; fi
        kubectl delete -f tenant.yaml --ignore-not-found --wait=false
        kubectl delete csr alice --ignore-not-found
        kubectl delete secret kindstack-proxy-tls -n default --ignore-not-found`);
      await reader.close();
    });

    followPage("docs/proxy.md", reader, () => ports);
  });

  describe("of troubleshooting.md", () => {
    const reader = new Reader();
    beforeAll(async () => {
      await reader.open(MAIN, {
        PULUMI_BACKEND_URL: `file://${reader.directory}/state`,
        PULUMI_CONFIG_PASSPHRASE: "secret",
      });
      await reader.run(`mkdir ${reader.directory}/state
        operator start run --install-crds
        printf 'name: kindstack\\nruntime: nodejs\\n' > Pulumi.yaml`);
      await apply(tenant("acme", { namespaces: ["acme-dev"] }));
      await reader.run("kubectl wait --for=condition=Ready tenant.multitenancy/acme --timeout=60s");
    });
    afterAll(async () => {
      await reader.close();
      await remove(namespace("acme-dev"));
    });

    followPage("docs/troubleshooting.md", reader);
  });

  describe("of write-a-kind.md", () => {
    const reader = new Reader();
    beforeAll(async () => {
      // A reader's folder is empty, and `npx kindstack` is what has been installed there.
      await reader.open(path.join(reader.home, "node_modules/kindstack/dist/src/cli/main.js"), {
        npm_config_prefer_offline: "true",
        KUBECONFIG: "",
      });
      await reader.run(`npm pack '${ROOT}' --ignore-scripts --silent --pack-destination ..`);
    });
    afterAll(async () => {
      await reader.run("if [ -d node_modules ]; then npx kindstack dev stop; fi");
      await reader.close();
    });

    followPage("docs/write-a-kind.md", reader);

    it("has the rights and the CRD that the kind calls for", async () => {
      const manifests = parseAllDocuments(fs.readFileSync(path.join(reader.home, "install.yaml"), "utf8"));
      const objects = manifests.map((document) => document.toJS() as Manifest);
      expect(objects.map(({ metadata }) => metadata.name)).toContain("notices.example.com");
      const role = objects.find(({ kind, metadata }) => kind === "ClusterRole" && metadata.name === "kindstack");
      const { rules = [] } = role as { rules?: { resources?: string[] }[] };
      const resources = rules.flatMap((rule) => rule.resources ?? []);
      expect(resources).toEqual(expect.arrayContaining(["configmaps", "notices", "tenants"]));
    });
  });
});
