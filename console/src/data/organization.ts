const KEY = 'gpurent.organization';
const ID = /^[0-9a-f-]{36}$/i;

/** Returns the organization for which this browser acts; undefined: the one that the user joined first. */
export function chosenOrganization(): string | undefined {
  try {
    const kept = localStorage.getItem(KEY) ?? '';
    // What is no id cannot even be sent, and every page would fail with it.
    return ID.test(kept) ? kept : undefined;
  } catch {
    return undefined;
  }
}

let sent = chosenOrganization();

/** Returns the organization in whose name requests are sent: the chosen one; else that of `/v1/me`, once it is known. */
export function sentOrganization(): string | undefined {
  return sent;
}

/** Has later requests sent in the name of an organization; undefined: of none. */
export function sendOrganization(id: string | undefined): void {
  sent = id;
}

/** Chooses an organization, or none, and begins anew with it: nothing of another one stays in memory. */
export function chooseOrganization(id: string | undefined, goTo = '/instances'): void {
  if (id === undefined) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, id);
  location.assign(goTo);
}
