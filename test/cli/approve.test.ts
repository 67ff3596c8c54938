import fs from "node:fs";
import path from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { approveCommand } from "../../src/cli/approve";
import { testDirectory } from "../directories";
import { writeKubeconfig } from "./kubeconfig";

it("names a report that is torn", async () => {
  const folder = testDirectory();
  onTestFinished(() => void vi.unstubAllEnvs());
  const [report, kubeconfig] = [path.join(folder, "report.json"), path.join(folder, "kubeconfig")];
  writeKubeconfig(kubeconfig, {});
  fs.writeFileSync(report, '{"objects": [');
  vi.stubEnv("KUBECONFIG", kubeconfig);

  const approved = approveCommand().parseAsync(["--report", report], { from: "user" });
  await expect(approved).rejects.toThrow(`${report} is no report of kindstack preview --output json`);
});
