import { hash } from "node:crypto";
import { existsSync } from "node:fs";
import fs from "node:fs/promises";
import path from "node:path";
import { execa } from "execa";
import { errorMessageOf } from "../../providers/errors";
import type { Layout } from "./layout";

/** Where PostgreSQL's programs and data lie, and who runs it. */
export interface PostgresInstallation {
  /** The folder of its programs. */
  bin: string;
  dataDirectory: string;
  /** PostgreSQL refuses to run as root: this user runs it instead. */
  owner?: { uid: number; gid: number };
}

/**
 * The programs are in the cache of tools, the data is in the cluster's directory. The user that runs PostgreSQL must
 * reach both. Under root, that is the user `postgres`. Where it cannot, as in root's home, a folder under /var/tmp
 * replaces both.
 */
export async function locatePostgres(layout: Layout, server: string): Promise<PostgresInstallation> {
  const [bin, dataDirectory] = [path.dirname(server), layout.postgres];
  if (process.getuid?.() !== 0) return { bin, dataDirectory };

  const owner = await postgresUser();
  const mayUse = async (file: string) => !(await execa("test", ["-x", file], { ...owner, reject: false })).failed;
  if ((await mayUse(layout.directory)) && (await mayUse(server))) return { bin, dataDirectory, owner };

  const home = standIn(layout);
  await fs.mkdir(home, { recursive: true, mode: 0o711 });
  const { uid, mode } = await fs.lstat(home);
  if (uid !== 0 || (mode & 0o022) !== 0)
    throw new Error(
      `${home} can be written by others, who may have put programs there; make it root's alone, and look into it`,
    );
  const copy = await copyOf(path.dirname(bin), home);
  return { bin: path.join(copy, "bin"), dataDirectory: path.join(home, "data"), owner };
}

/** The password of the database's user lies beside the data. */
export function passwordFileOf(dataDirectory: string): string {
  return `${dataDirectory}-password`;
}

/** Removes the data, wherever it lies. */
export async function removePostgresData(layout: Layout): Promise<void> {
  const files = [layout.postgres, passwordFileOf(layout.postgres)];
  if (process.getuid?.() === 0) files.push(standIn(layout));
  for (const file of files) await fs.rm(file, { recursive: true, force: true });
}

/** The user `postgres`, created where there is none. */
async function postgresUser(): Promise<{ uid: number; gid: number }> {
  const ask = async (what: "-u" | "-g") => Number((await execa("id", [what, "postgres"])).stdout);
  try {
    await ask("-u");
  } catch {
    await execa("useradd", ["--system", "--user-group", "--no-create-home", "postgres"]).catch((error) => {
      throw new Error(
        "PostgreSQL does not run as root, and a user `postgres` for it could not be created. " +
          `Create one, or use Kindstack as another user than root. ${errorMessageOf(error)}`,
      );
    });
  }
  return { uid: await ask("-u"), gid: await ask("-g") };
}

function standIn(layout: Layout): string {
  const digest = hash("sha256", layout.directory).slice(0, 12);
  return path.join("/var/tmp", `kindstack-postgres-${digest}`);
}

async function copyOf(native: string, home: string): Promise<string> {
  const { mtimeMs } = await fs.stat(path.join(native, "bin", "postgres")); // each package gets its own copy
  const copy = path.join(home, `native-${Math.trunc(mtimeMs)}`);
  if (!existsSync(copy)) {
    const aside = await fs.mkdtemp(path.join(home, ".copy-"));
    await fs.chmod(aside, 0o755);
    await fs.cp(native, aside, { recursive: true, verbatimSymlinks: true });
    await fs.rename(aside, copy);
  }
  return copy;
}
