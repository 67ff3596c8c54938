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
    `Node.js ${leastMajor}.${leastMinor} or later is needed; this is ${version}. Set PATH so that \`node\` is a newer one. ` +
    "In a clone, `npx` and npm's scripts use the Node.js that `npm ci` installs."
  );
}
