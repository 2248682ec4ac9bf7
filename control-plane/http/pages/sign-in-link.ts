import { Type } from 'typebox';
import { signInByLink } from '../../services/identity/sign-in/sign-in-links.js';
import { sessionOrigin } from '../access/client.js';
import { linkToken } from '../routes/identity/accounts.js';
import { FORM_TOKEN, type Field } from './forms.js';
import { html } from './html.js';
import { SIGN_IN, type FormSpec, type PageSpec } from './pages.js';
import { enter } from './sign-in.js';

const PATH = '/sign-in/link';
const TOKEN: Field = { name: 'token', label: null, wrong: 'The address has no link. Ask for a new one.' };

/**
 * The page of a link that signs a browser in. Its token is in the fragment of the address, which browsers send to nobody; the script of the
 * page moves it into the form. A button sends it: nobody is signed in by an address alone, such as one from a stranger.
 */
export const signInLinkPage: PageSpec = {
  path: PATH,
  operation: 'showSignInLink',
  summary: 'The page to sign in by a link',
  needs: 'nobody',
  usesScript: true,
  render: ({ formToken, values }) => ({
    title: 'Sign in by a link',
    content: [
      html`<p>
        This browser is then signed in to the account in which the link was made. Go on only if you have made it, or
        know who has.
      </p>`,
      html`<form method="post" action="${PATH}" data-fragment="${TOKEN.name}">
        <fieldset disabled>
          <input type="hidden" name="${FORM_TOKEN}" value="${formToken}" />
          <input type="hidden" name="${TOKEN.name}" value="${values[TOKEN.name]}" />
          <button>Sign in</button>
        </fieldset>
        <p class="wrong" role="alert" data-problem>
          The link needs the script of this page, which this browser does not run.
        </p>
      </form>`,
      html`<p><a href="${SIGN_IN}">Sign in with a password</a></p>`,
    ],
  }),
};

const linkBody = Type.Object({ token: linkToken });

export const signInLinkForm: FormSpec<typeof linkBody> = {
  servedOnFullDisk: true,
  path: PATH,
  operation: 'submitSignInLink',
  summary: 'Open a session for this browser by a link',
  page: signInLinkPage,
  fields: [TOKEN],
  body: linkBody,
  guessable: 'per address',
  words: { LINK_INVALID: 'This link is wrong, or it was used or has expired. Make a new one' },
  submit: ({ token }, visit) => enter(visit, signInByLink(visit.platform, token, sessionOrigin(visit.request)), '/'),
};
