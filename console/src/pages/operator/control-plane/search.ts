export const TABS = ['state', 'workers', 'settings'] as const;
export type Tab = (typeof TABS)[number];

/** Reads which part of the control plane the address names. */
export function controlPlaneSearch({ tab }: Record<string, unknown>): { tab?: Tab } {
  const known = TABS.find((each) => each === tab);
  return known === undefined ? {} : { tab: known };
}
