type Values = readonly (number | null)[];

/**
 * Returns what a chart draws of values that are `stepSeconds` apart: where neighbours are further apart than one and a half steps, a
 * point without a value is between them, so that no line goes over what nobody has measured. Times are in seconds.
 */
export function withGaps(
  at: readonly number[],
  lines: readonly Values[],
  stepSeconds: number,
): [number[], ...(number | null)[][]] {
  const isBeforeGap = (index: number) => (at[index + 1] ?? -Infinity) - (at[index] ?? 0) > 1.5 * stepSeconds;
  const spread = <T>(values: readonly T[], between: (index: number) => T) =>
    values.flatMap((value, index) => (isBeforeGap(index) ? [value, between(index)] : [value]));
  return [
    spread(at, (index) => (at[index] ?? 0) + stepSeconds),
    ...lines.map((values) => spread(values, (): number | null => null)),
  ];
}
