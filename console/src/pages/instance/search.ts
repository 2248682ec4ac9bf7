export const TABS = ['timeline', 'logs', 'usage', 'cost', 'settings'] as const;
export type Tab = (typeof TABS)[number];
export const WINDOWS = ['1h', '24h', '90d'] as const;
export type Window = (typeof WINDOWS)[number];

/** What the address of an instance says besides its id. */
export interface InstanceSearch {
  tab?: Tab;
  /** The time that the usage tab shows. */
  window?: Window;
}

/** Reads the address; what it does not know is left out. */
export function instanceSearch({ tab, window }: Record<string, unknown>): InstanceSearch {
  const [knownTab, knownWindow] = [TABS.find((each) => each === tab), WINDOWS.find((each) => each === window)];
  return { ...(knownTab ? { tab: knownTab } : {}), ...(knownWindow ? { window: knownWindow } : {}) };
}
