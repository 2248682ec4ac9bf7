export const TABS = ['members', 'instances', 'ledger', 'keys', 'templates', 'machines'] as const;
export type Tab = (typeof TABS)[number];

/** Reads which part of an organization its address names. */
export function organizationSearch({ tab }: Record<string, unknown>): { tab?: Tab } {
  const known = TABS.find((each) => each === tab);
  return known === undefined ? {} : { tab: known };
}
