import type { FastifyInstance } from 'fastify';
import type { Platform } from '../../services/system/platform.js';
import { acceptInviteForm, acceptInvitePage } from './accept-invite.js';
import { accountPage, endOthersForm, endSessionForm, passwordForm, passwordPage, signOutForm } from './account.js';
import { addForm, addPage, servePages } from './pages.js';
import { signInForm, signInPage, signUpForm, signUpPage } from './sign-in.js';

/** Routes for people with a browser: pages without script. They are not part of the API. */
export function pageRoutes(app: FastifyInstance, platform: Platform): void {
  servePages(app, platform);
  for (const page of [signInPage, signUpPage, accountPage, passwordPage, acceptInvitePage])
    addPage(app, platform, page);
  addForm(app, platform, signInForm);
  addForm(app, platform, signUpForm);
  addForm(app, platform, signOutForm);
  addForm(app, platform, endSessionForm);
  addForm(app, platform, endOthersForm);
  addForm(app, platform, passwordForm);
  addForm(app, platform, acceptInviteForm);
}
