import { describe, expect, it } from 'vitest';
import { acceptedAddress, obstacleToAccept, type Assertion } from '../../control-plane/domain/identity/company.js';
import { entraClaimsOf, tenantsOf } from '../../control-plane/domain/identity/microsoft.js';

const TENANT = '11111111-2222-3333-4444-555555555555';
const CONSUMERS = '9188040d-6c67-4c5b-b112-36a304b66dad';
const ENTRA = `https://login.microsoftonline.com/${TENANT}/v2.0`;
const OWN = 'https://login.acme.example/realms/staff';
const GOOGLE = 'https://accounts.google.com';
const EMAIL = 'alice@acme.example';

const saying = (claims: object, isVerified?: boolean): Assertion => ({
  subject: 'alice',
  email: EMAIL,
  isVerified,
  name: undefined,
  hostedDomain: 'acme.example',
  entra: entraClaimsOf(claims as Record<string, unknown>),
  signedInForMs: undefined,
});
const accepted = (issuer: string, assertion: Assertion, accept_unverified = true) =>
  acceptedAddress(issuer, assertion, [{ domain: 'acme.example', accept_unverified }]);

describe('an issuer', () => {
  it.each([
    [ENTRA, 'one'],
    [ENTRA.toUpperCase().replace('V2.0', 'v2.0'), 'one'],
    [`https://login.microsoftonline.us/${TENANT}/v2.0`, 'one'],
    [`https://login.partner.microsoftonline.cn/${TENANT}/v2.0`, 'one'],
    ['https://login.microsoftonline.com/common/v2.0', 'many'],
    ['https://login.microsoftonline.com/organizations/v2.0', 'many'],
    ['https://login.microsoftonline.com/consumers/v2.0', 'many'],
    ['https://login.microsoftonline.com/{tenantid}/v2.0', 'many'],
    [`https://login.microsoftonline.com/${CONSUMERS}/v2.0`, 'many'],
    [`https://login.microsoftonline.com/${CONSUMERS.toUpperCase()}/v2.0`, 'many'],
    [`https://login.microsoftonline.com/${TENANT}`, 'many'],
    [`https://sts.windows.net/${TENANT}/`, 'many'],
    [`https://acme.b2clogin.com/${TENANT}/v2.0`, 'many'],
    [`https://acme.ciamlogin.com/${TENANT}/v2.0`, 'many'],
    [`https://login.microsoftonline.com.evil.example/${TENANT}/v2.0`, 'none'],
    [OWN, 'none'],
  ])('%s has people of %s of the tenants of Microsoft', (issuer, tenants) => {
    expect(tenantsOf(issuer)).toBe(tenants);
    expect(obstacleToAccept(issuer) === undefined).toBe(tenants !== 'many');
  });

  it('of Google says itself which addresses it has verified', () => {
    expect(obstacleToAccept(GOOGLE)).toMatch(/Google/);
    expect(() => accepted(GOOGLE, saying({}))).toThrow(/Google/);
    expect(accepted(GOOGLE, saying({}, true), false)).toBe(EMAIL);
  });
});

describe('an address that is not called verified', () => {
  it('counts where the operator accepts it, unless the issuer says that it is not verified', () => {
    expect(accepted(OWN, saying({}))).toBe(EMAIL);
    expect(() => accepted(OWN, saying({}, false))).toThrow(/has not verified your e-mail address/);
    expect(() => accepted(OWN, saying({}), false)).toThrow(/send the claim email_verified/);
    expect(accepted(OWN, saying({}, true), false)).toBe(EMAIL);
  });

  it.each([true, 'true', 1, '1'])('of Microsoft counts with the claim xms_edov %j', (xms_edov) => {
    expect(accepted(ENTRA, saying({ xms_edov, acct: 0, preferred_username: EMAIL }))).toBe(EMAIL);
  });

  it.each([
    [{}, /administrator must add the optional claim xms_edov/],
    [{ xms_edov: false }, /xms_edov/],
    [{ xms_edov: 0 }, /xms_edov/],
    [{ xms_edov: 'yes' }, /xms_edov/],
    [{ xms_edov: true, acct: 1 }, /you are a guest/],
    [{ xms_edov: true, acct: '1' }, /you are a guest/],
    [{ xms_edov: true, upn: 'alice_bank.example#EXT#@acme.example' }, /you are a guest/],
    [{ xms_edov: true, preferred_username: 'alice_bank.example#ext#@acme.example' }, /you are a guest/],
  ])('of Microsoft is refused with %j', (claims, words) => {
    expect(() => accepted(ENTRA, saying(claims))).toThrow(words);
  });

  it('of Microsoft is refused where nobody accepts it, or where more than one tenant signs in', () => {
    const said = saying({ xms_edov: true });
    expect(() => accepted(ENTRA, said, false)).toThrow(/ask the operator to accept those of acme\.example/);
    const common = 'https://login.microsoftonline.com/common/v2.0';
    expect(() => accepted(common, said)).toThrow(/is not one tenant/);
    const other = [{ domain: 'other.example', accept_unverified: true }];
    expect(() => acceptedAddress(ENTRA, said, other)).toThrow(/may not speak for addresses of acme\.example/);
  });
});
