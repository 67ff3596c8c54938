import { unsupportedNode } from "../../providers/node-version";
import { nodeRange } from "../package";

// Imported before all else: the libraries fail on an older Node.js with errors of their own.
const reason = unsupportedNode(process.versions.node, nodeRange);
if (reason !== undefined) {
  console.error(`kindstack: ${reason}`);
  process.exit(1);
}
