import { enableCompileCache } from "node:module";

/** They start seldom, and leave nothing behind. */
const LONG_RUNNING = ["run", "proxy", "dev"];

// To compile what a command loads takes a third of its start. Node.js keeps it in the folder for temporary files, where it
// can write one; NODE_DISABLE_COMPILE_CACHE=1 turns that off.
const [, , command = ""] = process.argv;
if (!LONG_RUNNING.includes(command)) enableCompileCache();
