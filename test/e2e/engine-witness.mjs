// Stands before Pulumi's engine. While an update runs, it holds a socket of the kernel's that has the name of the stack, for
// as long as its process lives, however that ends; it writes down that an update begins, and whether another one lives.
import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

const [engine, record, label, ...args] = process.argv.slice(2);
const child = spawn(engine, args, { stdio: ["pipe", "pipe", "inherit"] });
const held = new Map();

createInterface({ input: process.stdin })
  .on("line", async (line) => {
    const { id, method, params } = JSON.parse(line);
    if (method === "up" || method === "destroy") {
      const server = createServer();
      held.set(id, server);
      const free = await new Promise((resolve) => {
        server.once("error", () => resolve("overlaps"));
        server.listen(`\0kindstack-${label}-${params.stack}`, () => resolve("alone"));
      });
      appendFileSync(record, `${free} ${method} ${params.stack} ${args.join(" ")}\n`);
    }
    child.stdin.write(`${line}\n`);
  })
  .on("close", () => child.stdin.end());

createInterface({ input: child.stdout }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (method === undefined) {
    held.get(id)?.close();
    held.delete(id);
  }
  process.stdout.write(`${line}\n`);
});
child.on("exit", (code) => process.exit(code ?? 1));
