import path from "node:path";
import { type Browser, type BrowserContext, request as http, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { known, type LiveObject } from "../../providers/kubernetes/client";
import { eventually } from "../../src/testing/eventually";
import { PLAN_TYPE, planName } from "../../stacks/contract/plan";
import { planSpec } from "../controller/plans";
import { untilReady } from "../e2e/conditions";
import { tenant, uniqueName } from "../e2e/manifests";
import { apply, client } from "../e2e/objects";
import { useOperator } from "../e2e/operator";
import { noBrowser, openBrowser } from "./browser";

const operator = useOperator({ env: { KINDSTACK_PROTECTED_NAMESPACES: "reserved-*" } });
const [ready, refused] = [uniqueName("acme"), uniqueName("globex")];
const tenantType = { apiVersion: "multitenancy.codereliant.io/v1", kind: "Tenant" };
/** A folder for what a reader sees; without it nothing is kept. */
const screenshots = process.env.KINDSTACK_SCREENSHOTS;

beforeAll(async () => {
  await apply(tenant(ready, { namespaces: [`${ready}-dev`, `${ready}-prod`] }));
  await apply(tenant(refused, { namespaces: ["reserved-one"] }));
  await untilReady(tenant(ready));
  await eventually(async () => expect(await operator.metric("kindstack_object_states", { state: "Stalled" })).toBe(1));
});

describe.skipIf(noBrowser)(`the console in a browser (${noBrowser ?? "Chromium"})`, () => {
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  const faults: string[] = [];

  beforeAll(async () => {
    browser = await openBrowser();
    context = await browser.newContext({ viewport: { width: 1200, height: 860 }, colorScheme: "light" });
    page = await context.newPage();
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    page.on("pageerror", (error) => faults.push(error.message));
  });
  afterAll(async () => browser?.close());

  const open = (address: string) => page.goto(operator.url(`/console${address}`));
  const text = (selector: string) => page.locator(selector).allInnerTexts();
  const keep = async (name: string) => {
    if (screenshots !== undefined) await page.screenshot({ path: path.join(screenshots, `${name}.png`) });
  };

  it("counts objects by kind and reason, and lists first what is not ready", async () => {
    await open("");
    expect(await page.title()).toBe("Overview · Kindstack");
    const tenants = page.locator(".card", { hasText: "multitenancy.codereliant.io" });
    expect(await tenants.locator(".count").innerText()).toBe("1 of 2 ready");
    expect(await tenants.locator(".reasons").innerText()).toContain("NamespaceProtected 1");
    expect(await text("tbody tr")).toEqual([expect.stringMatching(`${refused}.*NamespaceProtected.*Stalled`)]);
    await keep("overview");
  });

  it("leads with the keyboard alone to an object, and skips what is on every page", async () => {
    await open(`/kinds/tenants.multitenancy.codereliant.io?reason=Succeeded`);
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Skip to content");
    await page.keyboard.press("Enter");
    for (let presses = 0; presses < 12; presses++) {
      if ((await page.evaluate("document.activeElement.textContent")) === ready) break;
      await page.keyboard.press("Tab");
    }
    await Promise.all([page.waitForURL(`**/${ready}`), page.keyboard.press("Enter")]);
    expect(await text("h1")).toEqual([expect.stringContaining(ready)]);
  });

  it("shows an object's conditions, its resources and what they depend on, its updates and Events", async () => {
    await open(`/objects/tenants.multitenancy.codereliant.io/${ready}`);
    const tables = await text("table");
    expect(tables[0]).toMatch(/Ready\s+True\s+Succeeded/);
    expect(tables[1]).toContain(`Namespace\tnamespace/${ready}-dev\tin the cluster`);
    expect(tables[2]).toMatch(/update\tsucceeded\tcreate \S+ \S+/);
    expect(tables[3]).toMatch(/Normal\tUpdated\s+\d created/);
    expect(await page.locator("svg .node").count()).toBeGreaterThanOrEqual(4);
    expect(await page.locator("svg .edge").count()).toBeGreaterThanOrEqual(2);
    await keep("object");
  });

  it("shows what waits for an approval of an object, and the command that approves it", async () => {
    const { metadata } = (await known(client.get(tenantType, ready))) as LiveObject;
    const spec = planSpec({ ...tenantType, name: ready, uid: metadata.uid, generation: 1 });
    const name = planName({ singular: "tenant" }, metadata);
    await client.create({ ...PLAN_TYPE, metadata: { name, namespace: "default" }, spec, status: { state: "Pending" } });
    await eventually(async () => {
      await open(`/objects/tenants.multitenancy.codereliant.io/${ready}`);
      const section = await page.locator("section", { hasText: "To approve it" }).innerText();
      expect(section).toContain("update\tDeployment\tdefault/web\tspec.replicas: 1 → 2");
      const words = `tenants.multitenancy.codereliant.io ${ready} --digest ${spec.digest}`;
      expect(section).toContain(`kindstack approve ${words}`);
    });
    await keep("plan");
    await client.delete(PLAN_TYPE, name, "default");
  });

  it("follows what happens, without being loaded again", async () => {
    await page.evaluate("window.stays = true");
    await client.mergePatch(tenantType, ready, undefined, {
      metadata: { annotations: { "kindstack.dev/paused": "true" } },
    });
    await page.locator("h1 .badge", { hasText: "Paused" }).waitFor();
    expect(await page.evaluate("window.stays")).toBe(true);
    expect(await text("#live")).toEqual(["live"]);
  });

  it("is dark for who prefers that", async () => {
    const background = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
    const light = await background();
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await background()).not.toBe(light);
    await keep("object-dark");
    await page.emulateMedia({ colorScheme: "light" });
  });

  it("fits a narrow screen: only tables and the graph scroll sideways, and no cell is a column of letters", async () => {
    await page.setViewportSize({ width: 390, height: 860 });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    const heights = await page.locator("tbody tr").evaluateAll((rows) => rows.map((row) => row.clientHeight));
    expect(Math.max(...heights)).toBeLessThan(160);
    await keep("object-narrow");
    await page.setViewportSize({ width: 1200, height: 860 });
  });

  it("has landmarks, headings and names for what can be reached", async () => {
    for (const landmark of ["banner", "navigation", "main", "contentinfo"] as const) {
      expect(await page.getByRole(landmark).count(), landmark).toBeGreaterThan(0);
    }
    expect(await page.getByRole("heading", { level: 1 }).count()).toBe(1);
    for (const region of await page.getByRole("region").all()) {
      expect(await region.getAttribute("aria-label")).toMatch(/\w/);
    }
    expect(await page.locator("form, button, input").count()).toBe(0); // it only shows
  });

  it("ran nothing that its own policy refuses, and failed nowhere", () => expect(faults).toEqual([]));
});

describe("the console", () => {
  it("says so where there is no such page or object", async () => {
    for (const address of [
      "/console/nowhere",
      "/console/objects/tenants.multitenancy.codereliant.io/none",
      "/console/%",
    ]) {
      expect((await operator.get(address)).status, address).toBe(404);
    }
  });

  it("lets the browser run and load nothing but its own, and takes nothing", async () => {
    const asked = await http.newContext();
    const response = await asked.get(operator.url("/console"));
    expect(response.headers()["content-security-policy"]).toMatch(/^default-src 'none'; script-src 'self';/);
    expect(response.headers()["x-content-type-options"]).toBe("nosniff");
    const { etag = "" } = response.headers();
    expect((await asked.get(operator.url("/console"), { headers: { "if-none-match": etag } })).status()).toBe(304);
    expect((await asked.post(operator.url("/console"))).status()).toBe(405);
    // A site whose name was made to resolve to this machine.
    expect((await asked.get(operator.url("/console"), { headers: { host: "evil.example" } })).status()).toBe(404);
    await asked.dispose();
  });
});
