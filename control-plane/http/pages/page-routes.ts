import type { FastifyInstance } from 'fastify';
import type { App } from '../../services/parts/parts.js';
import { acceptInviteForm, acceptInvitePage } from './accept-invite.js';
import {
  accountPage,
  endOthersForm,
  endSessionForm,
  joinForm,
  passwordForm,
  passwordPage,
  signOutForm,
} from './account.js';
import { approveDeviceForm, approveDevicePage, denyDeviceForm, deviceForm, devicePage } from './device.js';
import { companyForm, companyPage, companyRoutes } from './company.js';
import { claimForm, companiesPage, knownPage, linkForm, linkPage, unlinkForm } from './link-companies.js';
import { confirmForm, confirmPage, forgotForm, forgotPage, resetForm, resetPage } from './links.js';
import { addForm, addPage, servePages } from './pages.js';
import { passkeyProofForm, proveForm, provePage } from './prove.js';
import { addScript } from './script.js';
import {
  addPasskeyForm,
  cancelRemovalForm,
  factorsPage,
  passkeyPage,
  removeFactorForm,
  renewCodesForm,
  totpForm,
  totpPage,
} from './second-factors.js';
import { passkeyStepForm, secondStepForm, secondStepPage } from './second-step.js';
import { signInForm, signInPage, signUpForm, signUpPage } from './sign-in.js';
import { signInLinkForm, signInLinkPage } from './sign-in-link.js';

/** Routes for people with a browser: pages without script. They are not part of the API. */
export function pageRoutes(app: FastifyInstance, platform: App): void {
  servePages(app, platform);
  const others = [signInLinkPage, forgotPage, resetPage, confirmPage, devicePage, approveDevicePage];
  const companies = [companyPage, knownPage, linkPage, companiesPage];
  const factors = [secondStepPage, provePage, factorsPage, totpPage, passkeyPage];
  const own = [signInPage, signUpPage, accountPage, passwordPage, acceptInvitePage];
  for (const page of [...own, ...others, ...companies, ...factors]) addPage(app, platform, page);
  addForm(app, platform, signInForm);
  addForm(app, platform, signUpForm);
  addForm(app, platform, signInLinkForm);
  addForm(app, platform, signOutForm);
  addForm(app, platform, endSessionForm);
  addForm(app, platform, endOthersForm);
  addForm(app, platform, joinForm);
  addForm(app, platform, passwordForm);
  addForm(app, platform, acceptInviteForm);
  addForm(app, platform, forgotForm);
  addForm(app, platform, resetForm);
  addForm(app, platform, confirmForm);
  addForm(app, platform, deviceForm);
  addForm(app, platform, approveDeviceForm);
  addForm(app, platform, denyDeviceForm);
  addForm(app, platform, companyForm);
  addForm(app, platform, claimForm);
  addForm(app, platform, linkForm);
  addForm(app, platform, unlinkForm);
  companyRoutes(app, platform);
  addForm(app, platform, secondStepForm);
  addForm(app, platform, passkeyStepForm);
  addForm(app, platform, proveForm);
  addForm(app, platform, passkeyProofForm);
  addForm(app, platform, removeFactorForm);
  addForm(app, platform, renewCodesForm);
  addForm(app, platform, cancelRemovalForm);
  addForm(app, platform, totpForm);
  addForm(app, platform, addPasskeyForm);
  addScript(app);
}
