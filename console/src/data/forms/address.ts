/** Reads what the address of a page says. What it cannot be is undefined. */

/** Returns a text of at most `longest` characters. Digits alone are a number to the router. */
export function textIn(value: unknown, longest = 1_024): string | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  return typeof text === 'string' && text !== '' && text.length <= longest ? text : undefined;
}

/** Returns a day that there is, as YYYY-MM-DD: the pages calculate with it. */
export function dayIn(value: unknown): string | undefined {
  return typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value))
    ? value
    : undefined;
}

/** Returns the one of some words that the value is. */
export function wordIn<const Word extends string>(words: readonly Word[], value: unknown): Word | undefined {
  return words.find((each) => each === value);
}

const DAY_MS = 86_400_000;

/** Returns the times from the first to the last of some days in UTC, both included, as the API takes them. */
export function periodOf({ from, to }: { from?: string | undefined; to?: string | undefined }) {
  return known({
    since: from && new Date(from).toISOString(),
    until: to && new Date(Date.parse(to) + DAY_MS).toISOString(),
  });
}

/** What is left of an object without its undefined fields. */
type Known<Fields> = { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> };

/** Leaves out what is undefined. */
export function known<Fields extends object>(fields: Fields): Known<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Known<Fields>;
}
