// Prints, for a shell, the environment and the arguments of the operator as the Deployment's Pod has them: from its manifest,
// its Secrets and its service account, with folders in place of its volumes. Nothing of the reader's environment is left.
// usage: node pod.mjs FOLDER NAMESPACE
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [folder, namespace] = process.argv.slice(2);
const kubectl = (...args) => execFileSync("kubectl", [...args, "-n", namespace], { encoding: "utf8" });
const get = (type, name) => JSON.parse(kubectl("get", type, name, "-o", "json"));
const secretOf = (name, optional = false) => {
  const found = kubectl("get", "secret", name, "-o", "json", "--ignore-not-found");
  if (found === "" && !optional) throw new Error(`the Pod cannot start: there is no Secret ${name}`);
  const { data = {} } = found === "" ? {} : JSON.parse(found);
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]));
};

const { spec } = get("deployment", "kindstack").spec.template;
const [container] = spec.containers;
const mounts = container.volumeMounts.map(({ name, mountPath }) => {
  const directory = join(folder, "pod", name);
  const { emptyDir, secret } = spec.volumes.find((volume) => volume.name === name);
  if (emptyDir !== undefined) rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  if (secret !== undefined) {
    const values = secretOf(secret.secretName, secret.optional);
    for (const { key, path } of secret.items ?? Object.keys(values).map((key) => ({ key, path: key }))) {
      if (values[key] === undefined) throw new Error(`the Pod cannot start: Secret ${secret.secretName} has no ${key}`);
      writeFileSync(join(directory, path), values[key]);
    }
  }
  return [mountPath, directory];
});
const inFolder = (text) => mounts.reduce((mapped, [path, directory]) => mapped.replace(path, directory), text);

const config = JSON.parse(
  execFileSync("kubectl", ["config", "view", "--raw", "--minify", "-o", "json"], { encoding: "utf8" }),
);
const user = { name: "account", user: { token: kubectl("create", "token", spec.serviceAccountName).trim() } };
const context = { name: "pod", context: { cluster: config.clusters[0].name, user: "account", namespace } };
const kubeconfig = join(folder, "pod", "kubeconfig");
writeFileSync(kubeconfig, JSON.stringify({ ...config, users: [user], contexts: [context], "current-context": "pod" }));

const environment = {
  PATH: process.env.PATH,
  HOME: join(folder, "pod"),
  KUBECONFIG: kubeconfig,
  KINDSTACK_NAMESPACE: namespace,
  ...Object.assign(
    {},
    ...(container.envFrom ?? []).map(({ secretRef }) => secretOf(secretRef.name, secretRef.optional)),
  ),
};
for (const { name, value, valueFrom } of container.env) {
  environment[name] = inFolder(value ?? secretOf(valueFrom.secretKeyRef.name)[valueFrom.secretKeyRef.key]);
}

// The API server runs on this machine, and reaches the operator by its address; any port will do.
const args = container.args
  .map(inFolder)
  .filter((word, index, all) => word !== "--admission-service" && all[index - 1] !== "--admission-service");
for (const option of ["--metrics-port", "--admission-port", "--preview-port"]) {
  if (args.includes(option)) args[args.indexOf(option) + 1] = "0";
}
const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
process.stdout.write(`for name in $(compgen -e); do case $name in DOCS_*|log|pid) ;; *) unset "$name";; esac; done\n`);
for (const [name, value] of Object.entries(environment)) process.stdout.write(`export ${name}=${quote(value)}\n`);
process.stdout.write(`set -- ${[...args, "--leader-elect", "--lease-namespace", namespace].map(quote).join(" ")}\n`);
