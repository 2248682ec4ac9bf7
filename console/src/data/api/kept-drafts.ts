/** A proof holds for so long; a sign-in and a payment take less. */
const LONGEST_MS = 15 * 60_000;
const PREFIX = 'gpurent.draft.';

interface Kept {
  at: number;
  draft: unknown;
}

/** After a sign-out nothing is kept any more, also not of a form that is still open. */
let keeps = true;
/** Somebody else is signed in: nobody is asked any more whether to leave what the page shows. */
let isOfOther = false;

/** Returns where a draft of a user for an organization is kept. */
export function draftKey(userId: string, organizationId: string | null, form: string): string {
  return `${PREFIX}${userId}.${organizationId ?? ''}.${form}`;
}

export function keepDraft(key: string, draft: unknown): void {
  if (keeps) store(() => sessionStorage.setItem(key, JSON.stringify({ at: Date.now(), draft } satisfies Kept)));
}

export function dropDraft(key: string): void {
  store(() => sessionStorage.removeItem(key));
}

/** Changes what the tab keeps. A browser that refuses that, or has no room, keeps nothing, and the form works without. */
function store(change: () => void): void {
  try {
    change();
  } catch {
    // What was typed is forgotten with the form.
  }
}

/** Returns a draft that was kept; undefined: there is none, it is too old, or nobody can read it. */
export function keptDraft(key: string): unknown {
  try {
    const kept = JSON.parse(sessionStorage.getItem(key) ?? 'null') as Kept | null;
    return kept && Date.now() - kept.at <= LONGEST_MS ? kept.draft : undefined;
  } catch {
    return undefined;
  }
}

/** Tells whether this tab keeps what somebody has typed into a form. */
export function isDraftKept(form: string): boolean {
  return Object.keys(sessionStorage).some((key) => key.startsWith(PREFIX) && key.endsWith(`.${form}`));
}

/** Forgets the drafts of everybody but a user. */
export function forgetDraftsOfOthers(userId: string): void {
  forget((key) => !key.startsWith(`${PREFIX}${userId}.`));
}

/** Forgets every draft, and keeps none any more: the reader signs out. */
export function endDrafts(): void {
  keeps = false;
  forget(() => true);
}

/** Notes that what the page shows is not its reader's any more. */
export function giveUpPage(): void {
  isOfOther = true;
}

/** Tells whether the page must be left, whatever stands in its forms. */
export function isGivenUp(): boolean {
  return isOfOther || !keeps;
}

function forget(isGone: (key: string) => boolean): void {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX) && isGone(key)) dropDraft(key);
}
