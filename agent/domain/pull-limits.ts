/** What one pull may take. */
export interface PullLimits {
  /** On average, after two minutes. */
  leastBytesPerSecond: number;
  longestMs: number;
  /** Of one image, unpacked. */
  mostBytes: number;
}
