import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { beforeAll, onTestFinished } from "vitest";

/** A folder for all tests of a file, or of a group, which is removed after their hooks. */
export function useDirectory(): string {
  const directory = makeDirectory();
  beforeAll(() => () => removeDirectory(directory));
  return directory;
}

/** A folder for one test: called in it, or in a `beforeEach`. */
export function testDirectory(): string {
  const directory = makeDirectory();
  onTestFinished(() => removeDirectory(directory));
  return directory;
}

function makeDirectory(): string {
  return fs.mkdtempSync(path.join(os.tmpdir(), "kindstack-test-"));
}

function removeDirectory(directory: string): void {
  fs.rmSync(directory, { recursive: true, force: true });
}
