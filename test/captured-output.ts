import { vi } from "vitest";

/** What this process prints from now on, until mocks are restored. */
export function captureOutput(): { stdout: string; stderr: string } {
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    vi.spyOn(process[name], "write").mockImplementation((text) => {
      output[name] += String(text);
      return true;
    });
  }
  return output;
}
