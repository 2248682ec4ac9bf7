import type { Mutant } from './mutant.js';

const SERVICES = 'control-plane/services';
const HTTP = 'control-plane/http';

/** Of the control plane: links by mail, and programs that sign in by a code. */
export const SIGN_INS: readonly Mutant[] = [
  {
    name: 'no-hash-for-an-unknown-address',
    file: `${SERVICES}/accounts/accounts.ts`,
    before: 'const matches = await passwords.verify(request.password, passwordOf(user));',
    after: 'const matches = user !== undefined && (await passwords.verify(request.password, passwordOf(user)));',
    tests: ['test/api/account-timing.test.ts'],
  },
  {
    name: 'mail-of-a-link-right-after-the-answer',
    file: `${SERVICES}/accounts/link-requests.ts`,
    before: '  addRequest(tx, request);\n}',
    after: "  addRequest(tx, request);\n  tx.nudge('account-links');\n}",
    tests: ['test/api/account-timing.test.ts'],
  },
  {
    name: 'link-for-another-purpose-taken',
    file: `${SERVICES}/accounts/link-requests.ts`,
    before: 'if (link?.purpose !== purpose || link.expires_at',
    after: 'if (!link || link.expires_at',
    tests: ['test/api/account-links.test.ts'],
  },
  {
    name: 'link-of-a-former-operator-taken',
    file: `${SERVICES}/accounts/password-reset.ts`,
    before: '  if (link.made_by !== null && !isOperator(tx, link.made_by)) throw invalidLink();\n',
    after: '  void isOperator;\n',
    tests: ['test/api/account-links.test.ts'],
  },
  {
    name: 'approved-code-kept-after-a-new-password',
    file: `${SERVICES}/accounts/sessions.ts`,
    before: ".where('session_id', '=', sessionId));\n  return",
    after: ".where('session_id', '=', `not ${sessionId}`));\n  return",
    tests: ['test/api/device-codes.test.ts'],
  },
  {
    name: 'domain-of-an-organization-not-recorded',
    file: `${SERVICES}/accounts/issuers.ts`,
    before: "  record('domain.withdraw', before, after);\n",
    after: '  void before;\n',
    tests: ['test/api/audit-log.test.ts'],
  },
  {
    name: 'code-used-twice',
    file: `${SERVICES}/accounts/open-device-session.ts`,
    before: "    tx.run(query.deleteFrom('device_codes').where('id', '=', code.id));\n",
    after: '',
    tests: ['test/api/device-codes.test.ts'],
  },
  {
    name: 'code-of-another-user-typed',
    file: `${SERVICES}/accounts/approve-device.ts`,
    before: 'if (code && (code.user_id === null || code.user_id === caller.userId)) {',
    after: 'if (code) {',
    tests: ['test/api/device-codes.test.ts'],
  },
  {
    name: 'another-code-approved-than-shown',
    file: `${SERVICES}/accounts/device-codes.ts`,
    before: 'if (typed?.id !== id) throw',
    after: 'if (typed === undefined || id === "") throw',
    tests: ['test/api/device-pages.test.ts'],
  },
  {
    name: 'code-filled-in-by-a-link',
    file: `${HTTP}/pages/device.ts`,
    before: "  reads: ['done'],",
    after: "  reads: ['done', 'user_code'],",
    tests: ['test/api/device-pages.test.ts'],
  },
];

/** Of the control plane: what a company's sign-in may do. */
export const COMPANIES: readonly Mutant[] = [
  {
    name: 'company-nonce-not-checked',
    file: 'control-plane/outbound/openid.ts',
    before: 'expectedNonce: begun.nonce',
    after: 'expectedNonce: undefined as never',
    tests: ['test/api/company-lies.test.ts'],
  },
  {
    name: 'company-signature-not-checked',
    file: 'control-plane/outbound/openid.ts',
    before: '    library.enableNonRepudiationChecks(configuration);\n',
    after: '',
    tests: ['test/api/company-lies.test.ts'],
  },
  {
    name: 'company-return-in-any-browser',
    file: 'control-plane/services/accounts/short-lived.ts',
    before: ' || entry.value.browser !== browser',
    after: '',
    tests: ['test/api/company-sign-in.test.ts'],
  },
  {
    name: 'company-return-counts-again',
    file: 'control-plane/services/accounts/company-sign-in.ts',
    before: '.take(state, browser)',
    after: '.get(state, browser)',
    tests: ['test/api/company-sign-in.test.ts'],
  },
  {
    name: 'company-asserts-any-domain',
    file: 'control-plane/domain/company.ts',
    before: 'domains.find((each) => each.domain === name)',
    after: 'domains[0]',
    tests: ['test/api/company-sign-in.test.ts'],
  },
  {
    name: 'guest-of-microsoft-taken',
    file: 'control-plane/domain/company.ts',
    before: '  if (entra.isGuest) throw',
    after: '  if (entra.isGuest && entra.isDomainVerified === false) throw',
    tests: ['test/unit/company.test.ts'],
  },
  {
    name: 'company-claims-confirmed-account',
    file: 'control-plane/services/accounts/claim-account.ts',
    before: ' && user.email_verified_at === null',
    after: '',
    tests: ['test/api/company-accounts.test.ts'],
  },
  {
    name: 'company-claim-keeps-access',
    file: 'control-plane/services/accounts/claim-account.ts',
    before: '    endAccess(tx, user, BY_CLAIM);\n',
    after: '',
    tests: ['test/api/company-accounts.test.ts'],
  },
  {
    name: 'company-links-another-account',
    file: 'control-plane/services/accounts/asserted-accounts.ts',
    before: '  checkIsFor(asserted, caller);\n',
    after: '',
    tests: ['test/api/company-accounts.test.ts'],
  },
  {
    name: 'password-off-not-checked',
    file: 'control-plane/services/accounts/accounts.ts',
    before: '    if (user.id !== linking) checkPasswordOn(tx, user);\n',
    after: '',
    tests: ['test/api/company-accounts.test.ts'],
  },
  {
    name: 'issuer-leads-anywhere',
    file: 'control-plane/outbound/fetch-issuer.ts',
    before: 'isChosen || addresses.every',
    after: 'addresses.some(() => true) || addresses.every',
    tests: ['test/api/company-lies.test.ts'],
  },
];
