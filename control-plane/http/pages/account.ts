import { Type } from 'typebox';
import type { AccountCaller } from '../../domain/caller.js';
import { changePassword } from '../../services/identity/sign-in/change-password.js';
import { describeUser } from '../../services/identity/users/users.js';
import { signOut } from '../../services/identity/sign-in/sign-in.js';
import { countKeysOf } from '../../services/organizations/keys/api-keys.js';
import { acceptOwnInvite, listOwnInvites, type OwnInvite } from '../../services/organizations/invites.js';
import { hasIssuers } from '../../services/identity/companies/issuers.js';
import {
  endOtherSessions,
  endSession,
  listSessions,
  type SessionDetails,
} from '../../services/identity/sessions/sessions.js';
import { clearSessionCookie } from '../access/cookies.js';
import { newPassword, presentPassword } from '../routes/identity/accounts.js';
import { choice, optional, uuid } from '../schema/schemas.js';
import { COMPANIES } from './company-links.js';
import { formOf, type Field } from './forms.js';
import { html, type Part } from './html.js';
import { noticeOf } from './notices.js';
import { pathTo, SIGN_IN, type FormSpec, type PageSpec, type View } from './pages.js';
import { consoleOf, HOME, NEW_PASSWORD_HINT, SECOND_FACTORS } from './sign-in.js';

const END_SESSION = '/account/sessions/end';
const END_OTHERS = '/account/sessions/end-others';
const SIGN_OUT = '/sign-out';
const PASSWORD = '/account/password';
const JOIN = '/account/invites/join';
/** Shown at once; the others once these are accepted or have expired. */
const MOST_INVITES = 50;
/** No user has more. */
const ALL_SESSIONS = 500;

/** Returns the user of a page that needs a session. */
export function userOf(view: { caller: AccountCaller | undefined }): AccountCaller {
  if (!view.caller) throw new Error('this page has no user');
  return view.caller;
}

export const accountPage: PageSpec = {
  path: HOME,
  operation: 'showAccount',
  summary: 'The page of the account: sessions, password',
  needs: 'session',
  reads: ['done'],
  render: (view) => {
    const caller = userOf(view);
    const { user, memberships } = describeUser(view.platform, caller.userId);
    return {
      title: 'Your account',
      content: [
        noticeOf(view),
        html`<p>You are signed in as ${user.name}, ${user.email}.</p>`,
        consoleOf(view.request) !== undefined &&
          html`<p><a href="${consoleOf(view.request) ?? ''}">Open the console</a></p>`,
        formOf({ action: SIGN_OUT, fields: [], button: 'Sign out' }, view),
        html`<h2>Organizations</h2>`,
        memberships.length === 0
          ? html`<p>You belong to no organization.</p>`
          : html`<ul>
              ${memberships.map(({ name, role }) => html`<li>${name} (${role})</li>`)}
            </ul>`,
        ...invitesOf(view, caller),
        html`<h2>Password</h2>
          <p><a href="${PASSWORD}">Change the password</a></p>
          <p><a href="${SECOND_FACTORS}">Second factors: authenticator apps, passkeys, recovery codes</a></p>`,
        hasIssuers(view.platform) &&
          html`<h2>Accounts at companies</h2>
            <p><a href="${COMPANIES}">Link an account at a company, to sign in with it</a></p>`,
        sessionsOf(view, caller),
      ],
    };
  },
};

const INVITE_ID: Field = { name: 'invite_id', label: null, wrong: 'This is no invitation to you.' };

/** Shows the invitations to the address of the user, also those that were not mailed. */
function invitesOf(view: View, caller: AccountCaller): Part[] {
  const { items } = listOwnInvites(view.platform, caller, { limit: MOST_INVITES });
  if (items.length === 0) return [];
  return [
    html`<h2>Invitations</h2>
      <ul>
        ${items.map(
          (invite) =>
            html`<li>To the organization ${invite.organization}, as ${invite.role}. ${joinButton(view, invite)}</li>`,
        )}
      </ul>`,
  ];
}

function joinButton(view: View, { id, organization }: OwnInvite): Part {
  const form = { action: JOIN, fields: [INVITE_ID], button: 'Join', isQuiet: true, about: organization } as const;
  return formOf(form, { ...view, values: { invite_id: id } });
}

const joinBody = Type.Object({ invite_id: uuid('The invitation') });

export const joinForm: FormSpec<typeof joinBody> = {
  path: JOIN,
  operation: 'submitJoin',
  summary: 'Join the organization of an invitation to the own address',
  page: accountPage,
  fields: [INVITE_ID],
  body: joinBody,
  words: { INVITE_NOT_FOUND: 'This invitation was accepted, withdrawn, or has expired' },
  submit: ({ invite_id }, visit) => {
    acceptOwnInvite(visit.platform, userOf(visit), invite_id);
    return pathTo(HOME, { done: 'joined' });
  },
};

function sessionsOf(view: View, caller: AccountCaller): Part {
  const { items } = listSessions(view.platform, caller, { limit: ALL_SESSIONS });
  const others = items
    .filter(({ isCurrent }) => !isCurrent)
    .sort((one, other) => other.last_used_at - one.last_used_at);
  return [
    html`<h2>Where you are signed in</h2>
      <ul class="sessions">
        ${items.filter(({ isCurrent }) => isCurrent).map((session) => html`<li>${describe(session)} This browser.</li>`)}
        ${others.map((session) => html`<li>${describe(session)} ${endButton(view, session)}</li>`)}
      </ul>`,
    others.length > 0 && formOf({ action: END_OTHERS, fields: [], button: 'End all other sessions' }, view),
  ];
}

function describe({ name, device, network, created_at, last_used_at }: SessionDetails): Part {
  return html`<strong>${name ?? deviceName(device)}</strong
    >${name !== null && ` (${deviceName(device)})`}${network !== null && `, from ${network}`}. Last used
    ${timeOf(last_used_at)}, signed in ${timeOf(created_at)}.`;
}

function deviceName(device: string | null): string {
  return device ?? 'An unknown device';
}

/** Returns a time as people read it. */
export function timeOf(at: number): Part {
  const text = new Date(at).toISOString();
  return html`<time datetime="${text}">${text.slice(0, 16).replace('T', ' ')} UTC</time>`;
}

const SESSION_ID: Field = { name: 'session_id', label: null, wrong: 'This is no session of yours.' };

function endButton(view: View, { id, name, device, network }: SessionDetails): Part {
  const about = `${name ?? deviceName(device)}${network === null ? '' : `, from ${network}`}`;
  const form = { action: END_SESSION, fields: [SESSION_ID], button: 'End', isQuiet: true, about } as const;
  return formOf(form, { ...view, values: { session_id: id } });
}

const endSessionBody = Type.Object({ session_id: uuid('The session') });

export const endSessionForm: FormSpec<typeof endSessionBody> = {
  servedOnFullDisk: true,
  path: END_SESSION,
  operation: 'submitEndSession',
  summary: 'End a session',
  page: accountPage,
  fields: [SESSION_ID],
  body: endSessionBody,
  words: { SESSION_NOT_FOUND: 'This session has ended already' },
  submit: ({ session_id }, visit) => {
    const caller = userOf(visit);
    endSession(visit.platform, caller, session_id);
    if (session_id !== caller.sessionId) return pathTo(HOME, { done: 'session-ended' });
    clearSessionCookie(visit.reply);
    return pathTo(SIGN_IN, { done: 'signed-out' });
  },
};

const noFields = Type.Object({});

export const endOthersForm: FormSpec<typeof noFields> = {
  servedOnFullDisk: true,
  path: END_OTHERS,
  operation: 'submitEndOtherSessions',
  summary: 'End all other sessions',
  page: accountPage,
  fields: [],
  body: noFields,
  submit: (_given, visit) => {
    endOtherSessions(visit.platform, userOf(visit));
    return pathTo(HOME, { done: 'sessions-ended' });
  },
};

export const signOutForm: FormSpec<typeof noFields> = {
  servedOnFullDisk: true,
  path: SIGN_OUT,
  operation: 'submitSignOut',
  summary: 'End the session of this browser',
  page: accountPage,
  fields: [],
  body: noFields,
  submit: (_given, { platform, reply, caller }) => {
    signOut(platform, userOf({ caller }).sessionId);
    clearSessionCookie(reply);
    return pathTo(SIGN_IN, { done: 'signed-out' });
  },
};

const REVOKE: Field = {
  name: 'revoke_api_keys',
  label: 'Also revoke the API keys that I have created',
  type: 'checkbox',
  isOptional: true,
  wrong: 'Choose whether to revoke your API keys.',
};
const PASSWORD_FIELDS: readonly Field[] = [
  {
    name: 'current_password',
    label: 'Current password',
    type: 'password',
    autocomplete: 'current-password',
    wrong: 'Give your current password.',
  },
  {
    name: 'new_password',
    label: 'New password',
    type: 'password',
    autocomplete: 'new-password',
    hint: NEW_PASSWORD_HINT,
    wrong: 'Give a new password of 12 to 256 characters.',
  },
  REVOKE,
];

export const passwordPage: PageSpec = {
  path: PASSWORD,
  operation: 'showPassword',
  summary: 'The page to change the password',
  needs: 'proof with factor',
  render: (view) => {
    const { userId, email } = userOf(view);
    const keys = countKeysOf(view.platform, userId);
    const hint = `You have ${keys}, in all organizations, with team keys. Programs that use them stop working. Revoke them if somebody else may know your password: that person can have created some.`;
    const fields = PASSWORD_FIELDS.filter((field) => field !== REVOKE || keys > 0);
    return {
      title: 'Change the password',
      content: [
        html`<p>This ends all your other sessions.</p>`,
        formOf(
          {
            action: PASSWORD,
            button: 'Change the password',
            username: email,
            fields: fields.map((field) =>
              field === REVOKE
                ? {
                    ...field,
                    hint,
                  }
                : field,
            ),
          },
          view,
        ),
        html`<p><a href="${HOME}">Back to your account</a></p>`,
      ],
    };
  },
};

const passwordBody = Type.Object({
  current_password: presentPassword,
  new_password: newPassword,
  ...optional({ revoke_api_keys: choice(['yes'], 'Whether to revoke the API keys') }),
});

export const passwordForm: FormSpec<typeof passwordBody> = {
  path: PASSWORD,
  operation: 'submitPassword',
  summary: 'Change the password',
  page: passwordPage,
  fields: PASSWORD_FIELDS,
  body: passwordBody,
  guessable: true,
  submit: async ({ current_password, new_password, revoke_api_keys }, visit) => {
    const isRevoking = revoke_api_keys === 'yes';
    const request = { current_password, new_password, revoke_api_keys: isRevoking };
    await changePassword(visit.platform, userOf(visit), request);
    return pathTo(HOME, { done: isRevoking ? 'password-and-keys' : 'password' });
  },
};
