import fs from "node:fs";
import path from "node:path";
import { withLoadedKinds } from "../../stacks/platform/kinds";
import { platformManifests } from "../../stacks/platform/manifests";
import { parseConfiguration } from "../../stacks/platform/parse-configuration";

interface PodSpec {
  containers: { env: { name: string; value?: string }[]; volumeMounts: { name: string; mountPath: string }[] }[];
  volumes: { name: string; configMap?: { name: string } }[];
}

/** A ConfigMap with a CA as the kubelet mounts it: files are links through a link to a folder. @returns what an installation with this bundle sets */
export function mountedBundle(certificate: string, mount: string): Promise<Record<string, string>> {
  fs.mkdirSync(path.join(mount, "..2026"), { recursive: true });
  fs.writeFileSync(path.join(mount, "..2026/ca.crt"), certificate);
  fs.symlinkSync("..2026", path.join(mount, "..data"));
  fs.symlinkSync("..data/ca.crt", path.join(mount, "ca.crt"));
  return bundled(mount);
}

/** What the manifests of an installation with a bundle set, with a test's folder in place of the mounted one. */
async function bundled(mount: string): Promise<Record<string, string>> {
  const { configuration, kinds } = withLoadedKinds(
    parseConfiguration({ kinds: "podsets", passphrase: "p", caBundle: "our-cas" }, "1.2.3"),
  );
  const deployment = (await platformManifests(configuration, kinds)).find(({ kind }) => kind === "Deployment");
  const pod = (deployment?.spec as { template: { spec: PodSpec } } | undefined)?.template.spec;
  const container = pod?.containers[0];
  const volume = pod?.volumes.find(({ configMap }) => configMap?.name === "our-cas");
  const { mountPath = "" } = container?.volumeMounts.find(({ name }) => name === volume?.name) ?? {};
  const set = container?.env.filter(({ value }) => mountPath !== "" && value?.includes(mountPath)) ?? [];
  return Object.fromEntries(set.map(({ name, value = "" }) => [name, value.replaceAll(mountPath, mount)]));
}
