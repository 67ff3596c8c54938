import type { AdmissionView } from "../../../contract/index";
import type { Amount, AmountOf } from "../quantity";
import { leftOf } from "../quota";
import { tenantNamed } from "./tenants";

/** What a tenant has left, at one moment: for all requests that are looked at then, it is added up once. */
export class TenantRest {
  readonly #ofItem = new Map<number, AmountOf>();
  readonly #amounts = new Map<string, Amount | undefined>();

  constructor(
    private readonly view: AdmissionView,
    private readonly name: string,
  ) {}

  /** By item of the tenant's quotas and by resource; `undefined` while it is not known. */
  of(index: number, resource: string): Amount | undefined {
    const key = `${index} ${resource}`;
    if (!this.#amounts.has(key)) this.#amounts.set(key, this.#item(index)?.(resource));
    return this.#amounts.get(key);
  }

  #item(index: number): AmountOf | undefined {
    const { view, name } = this;
    const tenant = tenantNamed(name, view);
    if (tenant === undefined) return undefined;
    const owned = () => ["namespaces", "quotas"].flatMap((watch) => view.byIndex(watch, "tenant", name));
    const item = this.#ofItem.get(index) ?? leftOf(tenant, owned(), index);
    this.#ofItem.set(index, item);
    return item;
  }
}
