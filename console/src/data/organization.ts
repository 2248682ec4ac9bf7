const KEY = 'gpurent.organization';

/** Returns the organization for which this browser acts; undefined: the one that the user joined first. */
export function chosenOrganization(): string | undefined {
  try {
    return localStorage.getItem(KEY) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Chooses an organization, or none, and begins anew with it: nothing of another one stays in memory. */
export function chooseOrganization(id: string | undefined, goTo = '/instances'): void {
  if (id === undefined) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, id);
  location.assign(goTo);
}
