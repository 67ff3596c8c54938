import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { approveCommand } from "../../src/cli/approve";

it("names a report that is torn", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-report-"));
  onTestFinished(() => {
    vi.unstubAllEnvs();
    fs.rmSync(folder, { recursive: true });
  });
  const [report, kubeconfig] = [path.join(folder, "report.json"), path.join(folder, "kubeconfig")];
  const names = { cluster: "dev", user: "dev" };
  const config = {
    ...{ apiVersion: "v1", kind: "Config", "current-context": "dev" },
    clusters: [{ name: "dev", cluster: { server: "https://127.0.0.1:1" } }],
    users: [{ name: "dev", user: {} }],
    contexts: [{ name: "dev", context: names }],
  };
  fs.writeFileSync(kubeconfig, JSON.stringify(config));
  fs.writeFileSync(report, '{"objects": [');
  vi.stubEnv("KUBECONFIG", kubeconfig);

  const approved = approveCommand().parseAsync(["--report", report], { from: "user" });
  await expect(approved).rejects.toThrow(`${report} is no report of kindstack preview --output json`);
});
