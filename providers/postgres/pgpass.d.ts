declare module "pgpass" {
  /** Looks a password up in the file that PGPASSFILE names, or in `~/.pgpass`; gives `undefined` where there is none. */
  export default function pgpass(
    server: { host: string; port: number; database: string; user: string },
    callback: (password: string | undefined) => void,
  ): void;
}
