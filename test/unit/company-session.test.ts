import { describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import { endOfVouched, isRenewalDue, meaningOf } from '../../control-plane/domain/identity/company-session.js';

describe('what the no of an issuer means', () => {
  const DISABLED = 'AADSTS50057: The user account is disabled. Trace ID: 1';

  it.each([
    // error, description, what it means without a question, and where the person may be asked
    ['access_denied', undefined, 'refused', 'denied'],
    ['access_denied', 'The resource owner denied the request', 'refused', 'denied'],
    ['access_denied', DISABLED, 'refused', 'refused'],
    ['access_denied', 'User is not assigned to the client application.', 'refused', 'denied'],
    ['access_denied', 'Policy evaluation failed for this request.', 'needs_person', 'denied'],
    ['access_denied', 'This device is not registered', 'needs_person', 'denied'],
    ['login_required', undefined, 'needs_person', 'other'],
    ['interaction_required', undefined, 'needs_person', 'other'],
    ['consent_required', undefined, 'needs_person', 'other'],
    ['account_selection_required', undefined, 'needs_person', 'other'],
    ['login_required', DISABLED, 'refused', 'refused'],
    ['invalid_grant', DISABLED, 'refused', 'refused'],
    ['invalid_grant', 'AADSTS50034', 'refused', 'refused'],
    ['interaction_required', 'AADSTS50105: not assigned', 'refused', 'refused'],
    ['invalid_grant', 'AADSTS500571: another one', 'other', 'other'],
    ['invalid_grant', ' AADSTS50057', 'other', 'other'],
    ['invalid_grant', 'aadsts50057', 'other', 'other'],
    ['server_error', 'access_denied', 'other', 'other'],
    ['', '', 'other', 'other'],
  ])('%s, %s', (error, description, silent, asked) => {
    expect(meaningOf({ error, description, isSilent: true })).toBe(silent);
    expect(meaningOf({ error, description, isSilent: false })).toBe(asked);
  });
});

describe('a session of a company', () => {
  const vouched = (endsAt: number | null) => ({ issuer: 'https://login.acme.example', vouchedAt: 1_000, endsAt });

  it('ends so many hours after the issuer has spoken, or never', () => {
    expect(endOfVouched(1_000, 8)).toBe(1_000 + 8 * HOUR_MS);
    expect(endOfVouched(1_000, null)).toBeNull();
  });

  it('is to be renewed in the second half of its time', () => {
    const due = [1_999, 2_000, 2_999, 3_000].map((now) => isRenewalDue(vouched(3_000), now));
    expect(due).toEqual([false, true, true, false]);
    expect(isRenewalDue(vouched(null), 1_000_000)).toBe(false);
  });
});
