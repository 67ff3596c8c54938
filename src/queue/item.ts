/** What a queue holds. Two items of one id are the same. */
export interface Item {
  readonly id: string;
}
