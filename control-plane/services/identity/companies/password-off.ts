import { domainOf } from '../../../domain/identity/company.js';
import { Refusal } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import type { Tx } from '../../../store/store.js';
import { findDomain } from './issuers.js';

type OfUser = Pick<Row<'users'>, 'email' | 'is_operator'>;

/**
 * Tells whether a user must sign in at the company, because an operator has switched passwords off for the domain of the address.
 * Operators are excepted: an installation must not lock them out.
 */
export function isPasswordOff(tx: Tx, { email, is_operator }: OfUser): boolean {
  return is_operator === 0 && isDomainWithoutPasswords(tx, email);
}

/** Refuses with PASSWORD_OFF for {@link isPasswordOff}. */
export function checkPasswordOn(tx: Tx, user: OfUser): void {
  if (isPasswordOff(tx, user)) throw passwordOff();
}

/** Refuses with PASSWORD_OFF an address whose company has switched passwords off, alike whether it has an account. */
export function checkDomainHasPasswords(tx: Tx, email: string): void {
  if (isDomainWithoutPasswords(tx, email)) throw passwordOff();
}

function isDomainWithoutPasswords(tx: Tx, email: string): boolean {
  return findDomain(tx, domainOf(email) ?? '')?.passwords_off === 1;
}

function passwordOff(): Refusal {
  return new Refusal(
    'PASSWORD_OFF',
    "passwords are switched off for addresses of this domain: sign in with your company's sign-in, at /sign-in/company",
  );
}
