import path from "node:path";

export type Layout = ReturnType<typeof layoutOf>;

/** Where the parts of a development cluster lie; all of them under one directory. All paths are absolute. */
export function layoutOf(dir: string) {
  const directory = path.resolve(dir);
  return {
    directory,
    pki: path.join(directory, "pki"),
    etcd: path.join(directory, "etcd"),
    postgres: path.join(directory, "postgres"),
    logs: path.join(directory, "logs"),
    kubeconfig: path.join(directory, "kubeconfig"),
    env: path.join(directory, "env"),
    passphrase: path.join(directory, "passphrase"),
    state: path.join(directory, "state"),
    work: path.join(directory, "work"),
    ports: path.join(directory, "ports.json"),
    record: path.join(directory, "cluster.json"),
  };
}

export function logFileOf(layout: Layout, component: string): string {
  return path.join(layout.logs, `${component}.log`);
}
