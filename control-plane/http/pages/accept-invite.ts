import { Type } from 'typebox';
import { acceptInvite, getInvite } from '../../services/organizations/invites.js';
import { text } from '../schema/schemas.js';
import { userOf } from './account.js';
import { formOf, type Field } from './forms.js';
import { html } from './html.js';
import { pathTo, SIGN_IN, type FormSpec, type PageSpec } from './pages.js';
import { HOME } from './sign-in.js';

const PATH = '/accept-invite';
const TOKEN: Field = { name: 'token', label: null, wrong: 'This is no invitation.' };

export const acceptInvitePage: PageSpec = {
  path: PATH,
  operation: 'showInvite',
  summary: 'The page to accept an invitation',
  needs: 'anybody',
  reads: ['token'],
  render: (view) => {
    const { platform, caller, values } = view;
    const token = values['token'] ?? '';
    if (caller) {
      const { organization, role } = getInvite(platform, caller, token);
      return {
        title: 'Accept an invitation',
        content: [
          html`<p>You are invited to the organization ${organization} as ${role === 'admin' ? 'an' : 'a'} ${role}.</p>`,
          html`<p>You are signed in as ${caller.email}.</p>`,
          formOf({ action: PATH, fields: [TOKEN], button: 'Join the organization' }, view),
        ],
      };
    }
    const here = pathTo(PATH, { token });
    return {
      title: 'Accept an invitation',
      content: [
        html`<p>You need an account with the e-mail address that the invitation was sent to.</p>`,
        html`<p><a href="${pathTo(SIGN_IN, { return_to: here })}">Sign in</a> to the account that you have, or</p>`,
        html`<p><a href="${pathTo('/sign-up', { invite_token: token })}">create an account</a>.</p>`,
      ],
    };
  },
};

const acceptBody = Type.Object({ token: text('The token of the invitation', { maxLength: 128 }) });

export const acceptInviteForm: FormSpec<typeof acceptBody> = {
  path: PATH,
  operation: 'submitInvite',
  summary: 'Join the organization of an invitation',
  page: acceptInvitePage,
  fields: [TOKEN],
  body: acceptBody,
  submit: ({ token }, visit) => {
    acceptInvite(visit.platform, userOf(visit), token);
    return pathTo(HOME, { done: 'joined' });
  },
};
