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
let linked = idIn(kept(KEY));
/** Whether the reader still has to be told of it: they may have to sign in first. */
const UNSAID = 'gpurent.organization.unsaid';

/** Returns what this tab keeps; null: nothing, or it may keep nothing. */
function kept(key: string): string | null {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

function keep(key: string, text: string | undefined): void {
  try {
    if (text === undefined) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, text);
  } catch {
    // A browser that keeps nothing forgets it with the page.
  }
}

function keepLinked(id: string | undefined): void {
  linked = id;
  keep(KEY, id);
  keep(UNSAID, id);
}

/** Takes the organization that the address names, and its name out of the address. */
function takeOfAddress(): void {
  const address = new URL(location.href);
  if (!address.searchParams.has(OF_LINK)) return;
  const id = idIn(address.searchParams.get(OF_LINK));
  address.searchParams.delete(OF_LINK);
  history.replaceState(history.state, '', address);
  if (id !== undefined) keepLinked(id);
}

takeOfAddress();
let sent = linked ?? chosenOrganization();
let isLeaving = false;

/** Tells, once, whether a link has decided for which organization this tab acts. */
export function hasLinkToSay(): boolean {
  const isUnsaid = kept(UNSAID) !== null;
  keep(UNSAID, undefined);
  return isUnsaid;
}

/** Returns the address of a page of the console for another tab, which acts for the same organization. */
export function addressForNewTab(path: string): string {
  return linked === undefined ? path : `${path}${path.includes('?') ? '&' : '?'}${OF_LINK}=${linked}`;
}

/** Returns the organization in whose name requests are sent: the chosen one; else that of `/v1/me`, once it is known. */
export function sentOrganization(): string | undefined {
  return sent;
}

/** Has later requests sent in the name of an organization; undefined: of none. */
export function sendOrganization(id: string | undefined): void {
  sent = id;
}

/** Chooses an organization, and begins anew with it: nothing of another one stays in memory. */
export function chooseOrganization(id: string, goTo = '/instances'): void {
  keepLinked(undefined);
  localStorage.setItem(KEY, id);
  location.assign(goTo);
}

/** Begins anew without an organization that the user has left: with the chosen one where a link had named it, else with the first. */
export function leaveOrganization(goTo = location.pathname + location.search): void {
  // Several requests can be refused at once.
  if (isLeaving) return;
  isLeaving = true;
  if (linked === undefined) localStorage.removeItem(KEY);
  keepLinked(undefined);
  location.assign(goTo);
}
