import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { hasPassword, withoutPasswords } from "../../providers/passwords";

afterEach(() => vi.unstubAllEnvs());

describe("withoutPasswords", () => {
  it.each([
    ["cannot open postgres://u:hunter2@db:5432/state?sslmode=x", "postgres://u:***@db:5432/state?sslmode=x"],
    ["postgres://u:hun@t/e:r2@db/state", "postgres://u:***@db/state"],
    ["//u:hunter2@db", "//u:***@db"],
    ["postgres://db/state?user=u&password=hunter2&sslmode=disable", "user=u&password=***&sslmode=disable"],
    ["postgres://db?PASSWORD=hunter2", "PASSWORD=***"],
    ["host=db user=u password=hunter2 dbname=state", "host=db user=u password=*** dbname=state"],
    ["password = 'hunter2 and \\' more' host=db", "password = *** host=db"],
    ['sslpassword="hunter2"', "sslpassword=***"],
    ["azblob://c?storage_account=a&sas_token=hunter2", "sas_token=***"],
    ["https://a.blob?sig=hunter2&se=1", "sig=***&se=1"],
    ["DefaultEndpointsProtocol=https;AccountKey=hunter2;X=1", "AccountKey=***;X=1"],
  ])("of %s", (text, shown) => {
    expect(withoutPasswords(text)).toContain(shown);
    expect(withoutPasswords(text)).not.toMatch(/hunter2|t\/e:r2/);
    expect(hasPassword(text)).toBe(true);
  });

  it.each([
    "the password is wrong",
    "http://example.com:8080/path and https://[::1]:443/",
    "postgres://db:5432/state",
    'the webhook "https://kindstack.svc:8443/x?timeout=10s" failed',
    "tokens=none of them",
  ])("leaves other text as it is: %s", (text) => {
    expect(withoutPasswords(text)).toBe(text);
    expect(hasPassword(text)).toBe(false);
  });

  it("shows no value of a parameter of the backend's URL that it does not know", () => {
    vi.stubEnv("PULUMI_BACKEND_URL", "s3://b?endpoint=http://127.0.0.1:1&session=hunter2&region=eu-west-1&fresh=true");
    const text =
      "open bucket s3://b?session=hunter2&region=eu-west-1&fresh=true: http://127.0.0.1:1 refused hunter2, true";
    expect(withoutPasswords(text)).toBe(text.replaceAll("hunter2", "***"));
  });

  it("shows no password of the backend in any spelling, wherever it is quoted", () => {
    const password = fc
      .string({ unit: "grapheme-ascii", minLength: 5, maxLength: 20 })
      .filter((text) => !/^\*+$/.test(text));
    const urls: ((password: string) => string)[] = [
      (text) => `postgres://u:${encodeURIComponent(text)}@db/state`,
      (text) => `postgres://db/state?${new URLSearchParams({ user: "u", password: text })}`,
      (text) => `postgres://db/state?user=u&password=${encodeURIComponent(text)}&sslmode=disable`,
    ];
    const quotes: ((password: string) => string)[] = [
      (text) => `password ${text} refused`,
      (text) => JSON.stringify({ password: text }),
      (text) => `parse "${encodeURIComponent(text)}": invalid`,
      (text) => `?${new URLSearchParams({ x: text })}`,
    ];
    fc.assert(
      fc.property(password, fc.constantFrom(...urls), fc.constantFrom(...quotes), (text, url, quote) => {
        vi.stubEnv("PULUMI_BACKEND_URL", url(text));
        const shown = withoutPasswords(`${quote(text)} at ${url(text)}`);
        for (const spelling of [text, encodeURIComponent(text)]) expect(shown).not.toContain(spelling);
      }),
      { seed: 3, numRuns: 500 },
    );
  });

  it("takes no longer for long texts that are made for it", () => {
    const started = process.threadCpuUsage().user;
    for (const part of ["//a:", "pass", "-", "password='", "&token="]) withoutPasswords(part.repeat(50_000));
    expect(process.threadCpuUsage().user - started).toBeLessThan(10_000_000); // minutes, where it is quadratic
  });
});
