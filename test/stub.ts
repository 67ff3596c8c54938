/** What a test needs of an object: the members that are given have their types, the others are not there. */
export const stub = <T extends object>(members: Partial<T>): T => members as T;
