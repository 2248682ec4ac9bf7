const KEY = 'gpurent.organization';
const OF_LINK = 'active_organization';
const ID = /^[0-9a-f-]{36}$/i;

/** Returns the organization for which this browser acts; undefined: the one that the user joined first. */
function chosenOrganization(): string | undefined {
  try {
    return idIn(localStorage.getItem(KEY));
  } catch {
    return undefined;
  }
}

/** What is no id cannot even be sent, and every page would fail with it. */
function idIn(text: string | null): string | undefined {
  return text !== null && ID.test(text) ? text : undefined;
}

/** The organization that a link of a mail has named, for this tab alone: anybody can write a link. */
let linked: string | undefined = sessionStorageGet();

function sessionStorageGet(): string | undefined {
  try {
    return idIn(sessionStorage.getItem(KEY));
  } catch {
    return undefined;
  }
}

function keepLinked(id: string | undefined): void {
  linked = id;
  try {
    if (id === undefined) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, id);
  } catch {
    // A browser that keeps nothing forgets it with the page.
  }
}

/** Takes the organization that the address names, and its name out of the address. Returns whether it names one. */
function takeOfAddress(): boolean {
  const address = new URL(location.href);
  const id = idIn(address.searchParams.get(OF_LINK));
  if (!address.searchParams.has(OF_LINK)) return false;
  address.searchParams.delete(OF_LINK);
  history.replaceState(history.state, '', address);
  if (id !== undefined) keepLinked(id);
  return id !== undefined;
}

/** Whether this page was opened by a link that names an organization. */
export const isOfLink = takeOfAddress();
let sent = linked ?? chosenOrganization();

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
  keepLinked(undefined);
  if (id === undefined) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, id);
  location.assign(goTo);
}

/** Begins anew without an organization that refuses the user: with the chosen one where a link had named it, else with the first. */
export function leaveOrganization(): void {
  const isChosen = linked === undefined;
  keepLinked(undefined);
  if (isChosen) localStorage.removeItem(KEY);
  location.assign(location.pathname + location.search);
}
