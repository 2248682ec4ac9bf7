/** The limits of one pull. */
export interface PullLimits {
  /** The least average rate, checked after two minutes. */
  leastBytesPerSecond: number;
  longestMs: number;
  /** The largest size of one image, unpacked. */
  mostBytes: number;
}
