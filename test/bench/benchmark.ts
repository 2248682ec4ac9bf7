/** Numbers, each by its name; times in milliseconds. */
export type Benchmark = () => Promise<Record<string, number>>;
