import { nodeRange } from "../package";

/**
 * @param range of the form `>=major.minor`
 * @returns why Kindstack does not run on this Node.js, and what to do; `undefined` when it does
 */
export function unsupportedNode(version: string, range: string): string | undefined {
  const numbers = (text: string) => text.replace(">=", "").split(".").map(Number);
  const [major = 0, minor = 0] = numbers(version);
  const [leastMajor = 0, leastMinor = 0] = numbers(range);
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return undefined;
  return (
    `Node.js ${leastMajor}.${leastMinor} or later is needed; this is ${version}. ` +
    "In a clone, `npx kindstack` and npm's scripts use the Node.js that `npm ci` installs."
  );
}

// Imported before all else: the libraries fail on an older Node.js with errors of their own.
const reason = unsupportedNode(process.versions.node, nodeRange);
if (reason !== undefined) {
  console.error(`kindstack: ${reason}`);
  process.exit(1);
}
