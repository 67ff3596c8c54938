import path from "node:path";

/** Where the parts of a development cluster lie; all of them under one directory. */
export interface Layout {
  /** The directory itself, absolute. */
  directory: string;
  pki: string;
  etcd: string;
  postgres: string;
  logs: string;
  kubeconfig: string;
  env: string;
  passphrase: string;
  /** Pulumi's state backend. */
  state: string;
  /** The operator's work directories. */
  work: string;
  record: string;
}

export function layoutOf(dir: string): Layout {
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
    record: path.join(directory, "cluster.json"),
  };
}

export function logFileOf(layout: Layout, component: string): string {
  return path.join(layout.logs, `${component}.log`);
}
