/** Returns the fields of `after` that differ from `before`: what nobody has changed is not sent, or it would undo what somebody else has. */
export function changedFields<T extends object>(before: T, after: T): Partial<T> {
  const known = new Map<string, unknown>(Object.entries(before));
  const changed = Object.entries(after).filter(([name, value]) => !isSame(known.get(name), value));
  return Object.fromEntries(changed) as Partial<T>;
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
