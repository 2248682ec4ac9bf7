/** What can be chosen, and how many offers have it among those that the other filters leave. */
export interface Choice<T> {
  value: T;
  offers: number;
}

/** Returns the choices in the order of their values, also the one that was made and that no offer has any more. */
export function choicesOf<T extends string | number>(
  counted: readonly Choice<T>[],
  chosen: T | undefined,
): Choice<T>[] {
  const isThere = chosen === undefined || counted.some(({ value }) => value === chosen);
  const all = isThere ? [...counted] : [...counted, { value: chosen, offers: 0 }];
  return all.sort((a, b) =>
    typeof a.value === 'number' ? a.value - Number(b.value) : a.value.localeCompare(String(b.value)),
  );
}
