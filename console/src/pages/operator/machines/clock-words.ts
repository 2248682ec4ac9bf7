/** Returns how a clock differs from the control plane's; `aheadMs`: by how much it is ahead, in milliseconds. */
export function clockWords(aheadMs: number | null | undefined): string {
  if (aheadMs === null || aheadMs === undefined) return 'not measured';
  const seconds = Math.abs(aheadMs / 1000).toFixed(1);
  return `${seconds} s ${aheadMs < 0 ? 'behind' : 'ahead of'} the control plane`;
}
